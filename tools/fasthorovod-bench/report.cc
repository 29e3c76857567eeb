#include "tools/fasthorovod-bench/report.h"

#include <fmt/format.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/fasthorovod-bench/choices.h"

namespace fasthorovod::tools {
namespace {

constexpr double kBytesOfAGigabyte = 1e9;
constexpr double kMicrosecondsOfASecond = 1e6;
constexpr double kAsFast = 1.05;

}  // namespace

core::Result<std::unique_ptr<Report>> Report::open(const core::World& world,
                                                   std::vector<std::string_view> contestants,
                                                   const AllreduceOptions& options) {
  std::unique_ptr<Report> report(new Report(world, std::move(contestants), options));
  if (options.trace == "-") {
    report->trace_ = stdout;
  } else if (!options.trace.empty()) {
    report->trace_file_.reset(std::fopen(options.trace.c_str(), "we"));
    report->trace_ = report->trace_file_.get();
    if (report->trace_ == nullptr) {
      return core::system_error(fmt::format("cannot write the trace to {}", options.trace), errno);
    }
  }
  return report;
}

Report::Report(const core::World& world, std::vector<std::string_view> contestants,
               const AllreduceOptions& options)
    : world_(world), contestants_(std::move(contestants)), options_(options) {}

double Report::bus_factor() const {
  return world_.size == 1 ? 1.0 : 2.0 * (world_.size - 1) / world_.size;
}

std::string Report::rounds() const {
  if (options_.budget_s > 0) return fmt::format("{} s a size, back to back", options_.budget_s);
  return fmt::format("repetitions {} of {} iterations{}", options_.repetitions, options_.iterations,
                     options_.back_to_back ? ", back to back" : "");
}

void Report::heading() const {
  if (options_.json) return;
  fmt::print("# all-reduce in place: ranks {}, hosts {}, door {}, codec {}, memory {}, {}\n",
             world_.size, world_.host_names.size(), door_name(options_.door),
             core::to_string(options_.codec), memory_name(options_.memory), rounds());
  fmt::print("#{:>12} {:>13} {:>9} {:>7} {:>11} {:>8} {:>8} {:>7}{}\n", "size", "count", "type",
             "redop", "time", "algbw", "busbw", "#wrong",
             compares() ? fmt::format(" {:>12} {:>10}", "backend", "ours/it") : "");
  fmt::print("#{:>12} {:>13} {:>9} {:>7} {:>11} {:>8} {:>8}\n", "(B)", "(elements)", "", "", "(us)",
             "(GB/s)", "(GB/s)");
  std::fflush(stdout);
}

void Report::row(const Row& row) {
  const double bytes = static_cast<double>(row.count * core::size_of(options_.type));
  const double seconds = row.summary.median_us / kMicrosecondsOfASecond;
  const double algbw = bytes / seconds / kBytesOfAGigabyte;
  if (options_.json) {
    print_json_row(row, algbw);
  } else {
    print_table_row(row, algbw);
  }
  std::fflush(stdout);
  rows_.push_back(row);
}

void Report::print_table_row(const Row& row, double algbw) const {
  fmt::print("{:>13} {:>13} {:>9} {:>7} {:>11.2f} {:>8.3f} {:>8.3f} {:>7}",
             row.count * core::size_of(options_.type), row.count, core::to_string(options_.type),
             reduction_name(options_.reduction), row.summary.median_us, algbw, algbw * bus_factor(),
             row.summary.wrong);
  if (compares()) {
    fmt::print(" {:>12} {:>10}", row.contestant,
               row.ratio ? fmt::format("{:.3f}", *row.ratio) : "");
  }
  fmt::print("\n");
}

void Report::print_json_row(const Row& row, double algbw) const {
  nlohmann::ordered_json line = {{"bytes", row.count * core::size_of(options_.type)},
                                 {"count", row.count},
                                 {"type", core::to_string(options_.type)},
                                 {"op", reduction_name(options_.reduction)},
                                 {"time_us", row.summary.median_us},
                                 {"min_us", row.summary.least_us},
                                 {"algbw", algbw},
                                 {"busbw", algbw * bus_factor()},
                                 {"wrong", row.summary.wrong},
                                 {"backend", row.contestant},
                                 {"door", door_name(options_.door)},
                                 {"memory", memory_name(options_.memory)},
                                 {"codec", core::to_string(options_.codec)},
                                 {"ranks", world_.size},
                                 {"hosts", world_.host_names.size()},
                                 {"iterations", options_.iterations},
                                 {"repetitions", options_.repetitions}};
  if (row.ratio) line["ratio"] = *row.ratio;
  if (row.back_to_back) {
    line["iterations"] = row.back_to_back->iterations;
    line["max_us"] = row.back_to_back->most_us;
    line["cpu_us"] = row.back_to_back->cpu_us;
  }
  fmt::print("{}\n", line.dump());
}

void Report::trace(std::uint64_t count, std::string_view contestant, std::size_t first,
                   const std::vector<Sample>& samples) const {
  if (trace_ == nullptr) return;
  const std::uint64_t bytes = count * core::size_of(options_.type);
  for (const Sample& sample : samples) {
    fmt::print(trace_, "{} {} {:.3f}{}\n", bytes, first++, sample.microseconds,
               compares() ? fmt::format(" {}", contestant) : "");
  }
  std::fflush(trace_);
}

void Report::print_comparison(std::string_view contestant) const {
  std::size_t sizes = 0;
  std::string slower;
  for (const Row& row : rows_) {
    if (row.contestant != contestant || !row.ratio) continue;
    ++sizes;
    if (*row.ratio <= kAsFast) continue;
    slower += fmt::format("{}{} ({:.2f})", slower.empty() ? "" : ", ",
                          row.count * core::size_of(options_.type), *row.ratio);
  }
  fmt::print("# Against {}, of {} sizes these take more than {} times as long: {}\n", contestant,
             sizes, kAsFast, slower.empty() ? "none" : slower);
}

void Report::closing() const {
  if (options_.json) return;
  std::uint64_t wrong = 0;
  double busbw = 0;
  int ours = 0;
  for (const Row& row : rows_) {
    wrong += row.summary.wrong;
    if (row.contestant != contestants_.front()) continue;
    const double bytes = static_cast<double>(row.count * core::size_of(options_.type));
    busbw +=
        bytes / row.summary.median_us * bus_factor() * kMicrosecondsOfASecond / kBytesOfAGigabyte;
    ++ours;
  }
  fmt::print("# Wrong values         : {} {}\n", wrong, wrong == 0 ? "OK" : "FAILED");
  fmt::print("# Average bus bandwidth: {:.3f} GB/s\n", busbw / ours);
  for (std::size_t at = 1; at < contestants_.size(); ++at) print_comparison(contestants_[at]);
  std::fflush(stdout);
}

}  // namespace fasthorovod::tools
