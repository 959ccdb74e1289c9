#pragma once

namespace vkml {

/// Whether operators on this thread record gradients. True at the start of every thread.
bool grad_enabled();
void set_grad_enabled(bool enabled);

/// Switches recording for a scope; the old value comes back, also after an exception.
class GradMode {
  public:
    explicit GradMode(bool enabled) : previous_(grad_enabled()) { set_grad_enabled(enabled); }
    ~GradMode() { set_grad_enabled(previous_); }
    GradMode(const GradMode&) = delete;
    GradMode& operator=(const GradMode&) = delete;

  private:
    bool previous_;
};

struct NoGrad : GradMode {
    NoGrad() : GradMode(false) {}
};

}  // namespace vkml
