#pragma once

namespace vkml::vulkan {

/// Something to close at exit, before the static destructors of drivers and layers run: those are loaded after ours, so
/// they are destroyed first, and what is closed later would call into ruins.
class ClosedAtExit {
  public:
    virtual void close() noexcept = 0;

  protected:
    ClosedAtExit();
    virtual ~ClosedAtExit();
    ClosedAtExit(const ClosedAtExit&) = delete;
};

/// Moves the closing ahead of the destructors of every static made so far.
void close_before_statics_made_so_far();

}  // namespace vkml::vulkan
