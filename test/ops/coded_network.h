// Ranks that exchange codes, without sockets: the boards and flows of a BoardNetwork, and on each
// rank a worker that encodes, answers and decodes (CodedFlight), all moved by one seeded scheduler.
// Thread: owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "ops/coded_flight.h"
#include "test/ops/board_network.h"

namespace fasthorovod::ops {

/// One exchange among all ranks of the network.
struct CodedExchange {
  std::uint32_t group = 0;  // as on the wire
  std::uint64_t sequence = 1;
  std::uint64_t segment_elements = 64;
  std::uint64_t chunk_bytes = 64;
  compression::CodecSetting setting{};
};

class CodedNetwork final {
 public:
  CodedNetwork(const compression::Codec& codec, BoardNetwork::Options network);

  /// All ranks start their exchanges of a group in this order, each with values of its own.
  void submit(const CodedExchange& exchange, const std::vector<std::vector<float>>& inputs);

  [[nodiscard]] BoardNetwork& boards() { return boards_; }
  [[nodiscard]] bool all_over() const;

  /// What a rank has of an exchange after it, and what encoding left of its values.
  [[nodiscard]] const std::vector<float>& results(std::size_t exchange, int rank) const {
    return at(exchange, rank).results;
  }
  [[nodiscard]] const std::vector<float>& left(std::size_t exchange, int rank) const {
    return at(exchange, rank).values;
  }
  [[nodiscard]] const CodedLayout& layout(std::size_t exchange, int rank) const {
    return at(exchange, rank).flight->layout();
  }

 private:
  struct Part {
    CodedExchange exchange;
    std::vector<float> values;
    std::vector<float> results;
    std::vector<std::byte> wire;
    std::optional<CodedFlight> flight;
    std::deque<std::uint32_t> pieces;  // over, and not looked at yet
    std::uint32_t encoded = 0;         // segments
    bool started = false;
    bool over = false;
  };

  [[nodiscard]] const Part& at(std::size_t exchange, int rank) const {
    return *parts_[static_cast<std::size_t>(rank)][exchange];
  }
  bool act(int rank);
  bool work(Part& part, int rank);
  [[nodiscard]] bool may_start(int rank, const Part& part) const;
  void start(int rank, Part& part);

  const compression::Codec& codec_;
  const BoardNetwork::Options options_;
  BoardNetwork boards_;
  std::vector<std::vector<std::unique_ptr<Part>>> parts_;  // by rank, in the order of their starts
};

}  // namespace fasthorovod::ops
