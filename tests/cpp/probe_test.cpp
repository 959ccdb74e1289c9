// A number that is measured once and kept for later programs.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "vkml/runtime/probe/matrix_advantage.h"

using namespace vkml;

namespace {

TEST(KeptNumber, IsMeasuredOnceAndAgainWhereTheFileIsDamaged) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() /
        ("vkml-kept-" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) + "-" +
         std::to_string(reinterpret_cast<std::uintptr_t>(&folder)));
    std::filesystem::create_directories(folder);
    const std::filesystem::path file = folder / "a.matrices";
    int runs = 0;
    const auto measure = [&] { return 8.0 + runs++; };
    EXPECT_EQ(kept_number(file, measure), 8.0);
    EXPECT_EQ(kept_number(file, measure), 8.0);
    EXPECT_EQ(runs, 1);
    std::ofstream(file, std::ios::binary) << "not a number";
    EXPECT_EQ(kept_number(file, measure), 9.0);
    EXPECT_EQ(kept_number(file, measure), 9.0);
    EXPECT_EQ(kept_number({}, measure), 10.0);
    EXPECT_EQ(kept_number({}, measure), 11.0);
    // A folder that is not there yet.
    EXPECT_EQ(kept_number(folder / "none" / "b.matrices", measure), 12.0);
    std::filesystem::remove_all(folder);
}

// Whoever measured first decides for all who measured at the same time.
TEST(KeptNumber, IsThatOfTheProgramThatWroteFirst) {
    const std::filesystem::path file = std::filesystem::temp_directory_path() / "vkml-kept-first.matrices";
    std::filesystem::remove(file);
    const double number = kept_number(file, [&] {
        EXPECT_EQ(kept_number(file, [] { return 3.0; }), 3.0);
        return 9.0;
    });
    EXPECT_EQ(number, 3.0);
    std::filesystem::remove(file);
}

}  // namespace
