#include "ops/algorithms/two_hop_allreduce.h"

#include <utility>
#include <vector>

#include "ops/algorithms/cut.h"
#include "ops/algorithms/keep_and_add.h"

namespace fasthorovod::ops {
namespace {

class Builder {
 public:
  explicit Builder(const Shape& shape) : shape_(shape) {}

  Schedule build() && {
    send_to_owners();
    const ByteSpan own = even_part(shape_, shape_.rank);
    for (const ByteSpan& chunk : chunks_of(shape_, own)) add_up(own, chunk);
    receive_sums();
    return std::move(schedule_);
  }

 private:
  void send_to_owners() {
    for (int distance = 1; distance < shape_.size; ++distance) {
      const int owner = shape_.neighbour(distance);
      for (const ByteSpan& chunk : chunks_of(shape_, even_part(shape_, owner))) {
        add_send(schedule_, owner, chunk, 0);
      }
    }
  }

  void add_up(ByteSpan own, ByteSpan chunk) {
    const std::uint32_t sum = add_sum(schedule_, shape_, own, chunk);
    std::vector<std::uint32_t> came;
    for (int distance = 1; distance < shape_.size; ++distance) {
      came.push_back(
          add_kept_receive(schedule_, shape_, own, chunk, shape_.neighbour(-distance), sum));
    }
    for (int distance = 1; distance < shape_.size; ++distance) {
      const std::uint32_t send = add_send(schedule_, shape_.neighbour(distance), chunk, 1);
      for (const std::uint32_t receive : came) add_dependency(schedule_, receive, send);
    }
  }

  void receive_sums() {
    for (int distance = 1; distance < shape_.size; ++distance) {
      const int owner = shape_.neighbour(-distance);
      for (const ByteSpan& chunk : chunks_of(shape_, even_part(shape_, owner))) {
        add_receive(schedule_, owner, chunk, 1, Action::kCopy);
      }
    }
  }

  const Shape& shape_;
  Schedule schedule_;
};

}  // namespace

Schedule two_hop_allreduce(const Shape& shape) { return Builder(shape).build(); }

std::uint64_t two_hop_scratch(const Shape& shape) {
  return scratch_for(shape, even_part(shape, shape.rank));
}

}  // namespace fasthorovod::ops
