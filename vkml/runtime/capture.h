#pragma once
#include <functional>
#include <memory>

#include "vkml/runtime/stream.h"

namespace vkml {

/// A recorded run of device work. Recording runs `work` once; `replay` submits the same commands again, on the same
/// tensors, at the cost of one submit. Values that the host passed in (numbers, explicit seeds, tensors made from host
/// data) are those of the recording; values that tensors hold are read anew, and draws of the default generator are
/// taken anew, so that a replayed step drops other elements than the one before. Reading a tensor on the host inside
/// `work` is an Error.
class Capture {
  public:
    Capture(Stream& stream, const std::function<void()>& work);
    ~Capture();
    Capture(Capture&&) noexcept;
    Capture& operator=(Capture&&) = delete;

    void replay();
    /// Commands per replay, barriers included.
    std::size_t size() const;

  private:
    Stream* stream_;
    std::unique_ptr<CaptureLog> log_;
};

}  // namespace vkml
