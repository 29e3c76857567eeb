#include "tools/fasthorovod-bench/neighbour.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/own_processors.h"

namespace fasthorovod::tools {
namespace {

// More than a last-level cache holds of one processor's data.
constexpr std::size_t kHungryBytes = std::size_t{256} << 20;
constexpr std::size_t kLine = 64;
constexpr std::size_t kLinesAtOnce = 4096;

}  // namespace

Neighbour::Neighbour(Kind kind, int processor)
    : thread_([this, kind, processor] { run(kind, processor); }) {
  began_.wait(false);
}

Neighbour::~Neighbour() {
  stopped_.store(true);
  thread_.join();
}

void Neighbour::run(Kind kind, int processor) {
  (void)transport::bind_thread({processor});
  std::vector<std::uint8_t> memory(kind == Kind::kHungry ? kHungryBytes : kLine);
  const std::size_t lines = memory.size() / kLine;
  began_.store(true);
  began_.notify_all();
  std::size_t line = 0;
  volatile std::uint64_t work = 0;
  while (!stopped_.load(std::memory_order_relaxed)) {
    for (std::size_t at = 0; at < kLinesAtOnce; ++at) {
      if (kind == Kind::kHungry) {
        ++memory[line * kLine];
        line = line + 1 == lines ? 0 : line + 1;
      } else {
        work = work + at;
      }
    }
  }
}

}  // namespace fasthorovod::tools
