#include "ops/progress_watch.h"

namespace fasthorovod::ops {

bool ProgressWatch::stalled(bool pending, std::uint64_t progress, core::TimePoint now) {
  if (!enabled() || !pending) {
    watching_ = false;
    return false;
  }
  if (!watching_ || progress != progress_) {
    watching_ = true;
    progress_ = progress;
    since_ = now;
  }
  return now - since_ >= limit_;
}

}  // namespace fasthorovod::ops
