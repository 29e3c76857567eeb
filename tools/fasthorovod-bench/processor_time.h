// Processor time of this process and of its children, which are read while they run: auxiliaries
// work for a rank as much as its own threads do. Thread: owner.
#pragma once

#include <ctime>
#include <vector>

namespace fasthorovod::tools {

class ProcessorTime final {
 public:
  /// Finds this process and its children, grandchildren and so on of now, which takes a look at
  /// every process there is.
  ProcessorTime();

  /// Counts from now on.
  void restart();

  /// What they have used since, in seconds. A child that has ended meanwhile does not count.
  [[nodiscard]] double seconds() const;

 private:
  struct Process {
    clockid_t clock;
    double before = 0;
  };

  std::vector<Process> processes_;
};

}  // namespace fasthorovod::tools
