// One collective, described for a test: inputs from a seed, run on a BoardNetwork, compared with an
// oracle.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/algorithm_table.h"
#include "test/ops/board_network.h"
#include "test/ops/scalar_reference.h"

namespace fasthorovod::ops {

struct CollectiveSpec {
  const Algorithm* algorithm = nullptr;
  BoardNetwork::Options network;
  std::uint64_t elements = 0;
  core::DataType type = core::DataType::kFloat32;
  core::Reduction reduction = core::Reduction::kSum;
  int root = 0;
  std::uint64_t chunk_bytes = 64;
  Door door = Door::kNamed;
  bool early = false;  // chunks leave early where they may
  int blocks = 0;  // where ranks have blocks: how the elements are divided: evenly, unevenly, all
                   // on one rank
  bool any_bits = false;  // inputs are any_values(), not small_values()
  std::uint64_t data_seed = 7;
};

Shape shape_of(const CollectiveSpec& spec, int rank);

/// Each rank's input.
std::vector<Bytes> inputs_of(const CollectiveSpec& spec);

/// Each rank's buffer before the operation: its input, or room alone where inputs lie apart.
std::vector<Bytes> buffers_of(const CollectiveSpec& spec);

/// What is defined of each rank's buffer after it.
std::vector<Bytes> defined_of(const CollectiveSpec& spec, const std::vector<Bytes>& buffers);

/// What is defined of each rank's buffer after it, for inputs whose reductions are exact.
std::vector<Bytes> expected_of(const CollectiveSpec& spec, const std::vector<Bytes>& inputs);

/// The bytes that rank sends, by the formula in the algorithm's header.
std::uint64_t bytes_by_formula(const CollectiveSpec& spec, int rank);

/// An operation of that collective on a buffer that lives as long as it does; where inputs lie
/// apart, so does `source`.
Operation operation_of(const CollectiveSpec& spec, int rank, Bytes& buffer, std::uint64_t sequence,
                       const Bytes* source = nullptr);

/// Runs it; what is defined of each rank's buffer afterwards. Fails the test when an operation does
/// not complete.
std::vector<Bytes> run_collective(const CollectiveSpec& spec);

/// Runs it and checks answer and bytes.
void check_collective(const CollectiveSpec& spec);

}  // namespace fasthorovod::ops
