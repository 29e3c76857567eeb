// One all-reduce through the arenas of hosts, described for a test: inputs from a seed, the lanes'
// part done here, and what must come out, to the bit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/host_operation.h"
#include "test/ops/hosts.h"
#include "test/ops/scalar_reference.h"

namespace fasthorovod::ops {

/// Which buffers of a rank lie in its arena.
struct Lent {
  bool input = false;
  bool output = false;
};

struct HostAllreduceSpec {
  Hosts hosts{{0, 1}};
  std::vector<int> members{};  // world ranks by position; empty: positions
  std::uint64_t elements = 0;
  core::DataType type = core::DataType::kFloat32;
  core::Reduction reduction = core::Reduction::kSum;
  bool in_place = false;
  std::vector<Lent> lent{};   // by position; empty: none. In place: either is both
  bool beyond_caches = true;  // as of large outputs, whatever their size
  std::uint32_t group = 1;
  std::uint64_t sequence = 1;
  bool any_bits = true;  // false: small values, whose sums are exact in any order
  std::uint64_t seed = 1;
  std::uint64_t largest_area = 1U << 20;
};

class HostAllreduce final {
 public:
  explicit HostAllreduce(HostAllreduceSpec spec);

  [[nodiscard]] const HostAllreduceSpec& spec() const { return spec_; }
  [[nodiscard]] int size() const { return static_cast<int>(inputs_.size()); }
  [[nodiscard]] HostLayout layout(int position) const;
  [[nodiscard]] int member(int position) const;

  /// What lend() needs at that position.
  [[nodiscard]] std::size_t lent_bytes(int position) const;
  /// Moves the buffers that are to lie in the rank's arena there. The memory outlives this.
  void lend(int position, std::span<std::byte> memory);

  /// What the rank at that position runs, without `done`. Inputs and outputs live as long as this.
  [[nodiscard]] HostOperation operation(int position, std::span<std::byte> area);

  /// What lanes do when all gates of a piece are open; `areas` by position.
  void exchange(std::uint32_t piece, const std::vector<std::span<std::byte>>& areas) const;

  /// Fails the test when what came out at that position is wrong.
  void check(int position) const;

 private:
  HostAllreduceSpec spec_;
  std::vector<Bytes> inputs_;
  std::vector<Bytes> outputs_;
  std::vector<std::span<std::byte>> inputs_at_;
  std::vector<std::span<std::byte>> outputs_at_;
  Bytes expected_;
};

}  // namespace fasthorovod::ops
