// A thread beside the one that is measured: it keeps a processor busy, or fills the last-level
// cache. Thread: owner.
#pragma once

#include <atomic>
#include <thread>

namespace fasthorovod::tools {

class Neighbour final {
 public:
  enum class Kind { kBusy, kHungry };

  /// Runs there until it is destroyed, and has begun when this returns.
  Neighbour(Kind kind, int processor);
  ~Neighbour();
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

 private:
  void run(Kind kind, int processor);

  std::atomic<bool> began_{false};
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

}  // namespace fasthorovod::tools
