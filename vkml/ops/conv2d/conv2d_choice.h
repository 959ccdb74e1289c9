#pragma once
#include "vkml/ops/conv2d/conv2d_paths.h"

/// Which path a convolution takes: a table, the first row that fits wins, the last always does.
namespace vkml::conv {

/// Does not look at the batch beyond whether it is empty, so that a sample gets the same bits in any batch.
Path choose_path(Part part, const Sizes& sizes, DType dtype, bool cpu, const Limits& limits, std::uint64_t dispatch);

/// Tiles of the implicit product. All give the same bits, so this choice may look at the batch.
enum class TileSize : std::uint8_t { any, small, wide, square };
/// The one that is asked for by name.
TileSize wanted_tile();

/// The path to take from now on where it can be, by name; empty gives the choice back to the table and to
/// VKML_CONV2D_PATH.
void force_path(std::string_view name);
std::vector<std::string_view> path_names();

}  // namespace vkml::conv
