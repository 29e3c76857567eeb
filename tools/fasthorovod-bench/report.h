// What fasthorovod-bench prints: nccl-tests' table or JSON lines, and the trace. Rank 0 only.
// Thread: owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/world.h"
#include "tools/fasthorovod-bench/allreduce.h"
#include "tools/fasthorovod-bench/summary.h"

namespace fasthorovod::tools {

/// What only a back-to-back measurement has.
struct BackToBackFigures {
  double most_us = 0;  // the slowest iteration
  double cpu_us = 0;   // processor time of an iteration, of all ranks
  std::size_t iterations = 0;
};

/// One contestant at one size.
struct Row {
  std::uint64_t count = 0;
  std::string_view contestant;
  Summary summary;
  std::optional<double> ratio{};  // the first contestant's time by this one's
  std::optional<BackToBackFigures> back_to_back{};
};

class Report final {
 public:
  /// Opens the trace. `contestants` are their names, the first one ours; the options outlive this.
  static core::Result<std::unique_ptr<Report>> open(const core::World& world,
                                                    std::vector<std::string_view> contestants,
                                                    const AllreduceOptions& options);

  void heading() const;
  void row(const Row& row);
  /// `first`: the number of the first sample among all of its size and contestant.
  void trace(std::uint64_t count, std::string_view contestant, std::size_t first,
             const std::vector<Sample>& samples) const;
  /// Totals, after the last row.
  void closing() const;

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  Report(const core::World& world, std::vector<std::string_view> contestants,
         const AllreduceOptions& options);
  [[nodiscard]] bool compares() const { return contestants_.size() > 1; }
  [[nodiscard]] double bus_factor() const;
  [[nodiscard]] std::string rounds() const;
  void print_table_row(const Row& row, double algbw) const;
  void print_json_row(const Row& row, double algbw) const;
  void print_comparison(std::string_view contestant) const;

  const core::World world_;
  const std::vector<std::string_view> contestants_;
  const AllreduceOptions& options_;
  std::unique_ptr<std::FILE, Closer> trace_file_;
  std::FILE* trace_ = nullptr;  // that file, standard output, or none
  std::vector<Row> rows_;
};

}  // namespace fasthorovod::tools
