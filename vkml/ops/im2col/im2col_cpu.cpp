#include <algorithm>
#include <utility>
#include <vector>

#include "vkml/core/float16.h"
#include "vkml/ops/im2col/im2col_kernel.h"
#include "vkml/runtime/cpu/parallel.h"

namespace vkml {
namespace {

/// Window positions whose tap `k` lies inside the image: first and one past the last.
std::pair<std::int64_t, std::int64_t> inside(std::int64_t k, std::int64_t dilation, std::int64_t stride,
                                             std::int64_t padding, std::int64_t extent, std::int64_t count) {
    const std::int64_t shift = padding - k * dilation;  // position * stride - shift is the coordinate
    const std::int64_t first = shift <= 0 ? 0 : (shift + stride - 1) / stride;
    const std::int64_t past = extent + shift <= 0 ? 0 : (extent + shift - 1) / stride + 1;
    return {std::min(first, count), std::clamp(past, std::min(first, count), count)};
}

template <class T>
void columns(const Im2colArgs& args) {
    const T* from = reinterpret_cast<const T*>(args.from);
    T* to = reinterpret_cast<T*>(args.to);
    const std::int64_t kw = args.kernel_w, kh = args.kernel_h, out_w = args.out_w, out_h = args.out_h,
                       channels = args.channels;
    const std::int64_t plane = out_h * out_w, rows = plane ? static_cast<std::int64_t>(args.count) / plane : 0;
    cpu::parallel_for(
        rows, std::max<std::int64_t>(1, cpu::kGrain / std::max<std::int64_t>(1, plane)),
        [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t row = begin; row < end; row++) {
                const std::int64_t kx = row % kw, ky = row / kw % kh, c = row / (kw * kh) % channels,
                                   n = row / (kw * kh) / channels;
                const T* image = from + n * args.strides[0] + c * args.strides[1];
                const auto [x0, x1] = inside(kx, args.dilation_w, args.stride_w, args.padding_w, args.w, out_w);
                const auto [y0, y1] = inside(ky, args.dilation_h, args.stride_h, args.padding_h, args.h, out_h);
                const std::int64_t step = args.stride_w * args.strides[3];
                for (std::int64_t y = 0; y < out_h; y++) {
                    T* line = to + row * plane + y * out_w;
                    if (y < y0 || y >= y1) {
                        std::fill(line, line + out_w, T{0});
                        continue;
                    }
                    const std::int64_t h = y * args.stride_h - args.padding_h + ky * args.dilation_h;
                    const T* source =
                        image + h * args.strides[2] + (kx * args.dilation_w - args.padding_w) * args.strides[3];
                    std::fill(line, line + x0, T{0});
                    if (step == 1)
                        std::copy(source + x0, source + x1, line + x0);
                    else
                        for (std::int64_t x = x0; x < x1; x++) line[x] = source[x * step];
                    std::fill(line + x1, line + out_w, T{0});
                }
            }
        });
}

template <class T, class Value, class Load, class Store>
void image(const Im2colArgs& args, const Load& load, const Store& store) {
    const T* from = reinterpret_cast<const T*>(args.from);
    T* to = reinterpret_cast<T*>(args.to);
    const std::int64_t kw = args.kernel_w, kh = args.kernel_h, width = args.w, plane = std::int64_t{args.h} * width;
    const std::int64_t planes = plane ? static_cast<std::int64_t>(args.count) / plane : 0;
    const std::int64_t grain = std::max<std::int64_t>(1, cpu::kGrain / std::max<std::int64_t>(1, plane * kw * kh));
    cpu::parallel_for(planes, grain, [&](std::int64_t begin, std::int64_t end) {
        std::vector<Value> sums(static_cast<std::size_t>(plane));
        for (std::int64_t p = begin; p < end; p++) {
            std::fill(sums.begin(), sums.end(), Value{0});
            const std::int64_t n = p / args.channels, c = p % args.channels;
            for (std::int64_t tap = 0; tap < kh * kw; tap++) {
                const T* cols = from + n * args.strides[0] + (c * kh * kw + tap) * args.strides[1];
                const std::int64_t ky = tap / kw, kx = tap % kw;
                const auto [x0, x1] = inside(kx, args.dilation_w, args.stride_w, args.padding_w, args.w, args.out_w);
                const auto [y0, y1] = inside(ky, args.dilation_h, args.stride_h, args.padding_h, args.h, args.out_h);
                for (std::int64_t y = y0; y < y1; y++) {
                    const std::int64_t h = y * args.stride_h - args.padding_h + ky * args.dilation_h;
                    Value* line = sums.data() + h * width + kx * args.dilation_w - args.padding_w;
                    const T* source = cols + y * args.out_w * args.strides[2];
                    for (std::int64_t x = x0; x < x1; x++) line[x * args.stride_w] += load(source[x * args.strides[2]]);
                }
            }
            for (std::int64_t i = 0; i < plane; i++) to[p * plane + i] = store(sums[static_cast<std::size_t>(i)]);
        }
    });
}

template <class T>
void plain_image(const Im2colArgs& args) {
    image<T, T>(args, [](T x) { return x; }, [](T x) { return x; });
}

}  // namespace

void im2col_cpu(const void* raw, DType dtype, const Spec&, Grid) {
    const auto& args = *static_cast<const Im2colArgs*>(raw);
    switch (itemsize(dtype)) {
        case 1:
            return columns<std::uint8_t>(args);
        case 2:
            return columns<std::uint16_t>(args);
        case 4:
            return columns<std::uint32_t>(args);
        default:
            return columns<std::uint64_t>(args);
    }
}

void col2im_cpu(const void* raw, DType dtype, const Spec&, Grid) {
    const auto& args = *static_cast<const Im2colArgs*>(raw);
    switch (dtype) {
        case DType::f64:
            return plain_image<double>(args);
        case DType::f32:
            return plain_image<float>(args);
        case DType::f16:
            return image<std::uint16_t, float>(args, float_from_f16, f16_from_float);
        case DType::bf16:
            return image<std::uint16_t, float>(args, float_from_bf16, bf16_from_float);
        case DType::i64:
            return plain_image<std::uint64_t>(args);
        case DType::i32:
            return plain_image<std::uint32_t>(args);
        case DType::i16:
            return plain_image<std::uint16_t>(args);
        default:
            return plain_image<std::uint8_t>(args);
    }
}

}  // namespace vkml
