// One rank of MPI's all-reduce under the loop of back_to_back.h: float32 sums in place. Built once
// with each MPI, see mpi_build.sh.
//
//     mpi_rank BYTES[,BYTES...] SECONDS ITERATIONS [trace]
//
// ITERATIONS counts where SECONDS is 0. Rank 0 prints a JSON object a size, as fasthorovod-bench
// does, and with `trace` before it "BYTES NUMBER MICROSECONDS" for each iteration as it ends.
#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tools/fasthorovod-bench/back_to_back.h"
#include "tools/fasthorovod-bench/pattern.h"
#include "tools/fasthorovod-bench/summary.h"

namespace {

namespace core = fasthorovod::core;
namespace tools = fasthorovod::tools;

class MpiRank final : public tools::BackToBackRank {
 public:
  explicit MpiRank(std::vector<std::byte>& values) : values_(values) {}

  core::Status allreduce() override {
    // A failure ends the job: MPI_ERRORS_ARE_FATAL is the default.
    MPI_Allreduce(MPI_IN_PLACE, values_.data(), static_cast<int>(values_.size() / sizeof(float)),
                  MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return {};
  }

  core::Result<std::vector<double>> exchange(const std::vector<double>& own) override {
    int size = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::vector<double> all(own.size() * static_cast<std::size_t>(size));
    const int count = static_cast<int>(own.size());
    MPI_Allgather(own.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, MPI_COMM_WORLD);
    return all;
  }

 private:
  std::vector<std::byte>& values_;
};

struct Arguments {
  std::vector<std::size_t> sizes;
  tools::Pace pace;
  bool trace = false;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  std::istringstream sizes(argv[1]);
  for (std::string size; std::getline(sizes, size, ',');) {
    arguments.sizes.push_back(std::stoull(size));
  }
  arguments.pace.budget_s = std::stod(argv[2]);
  arguments.pace.iterations = std::stoi(argv[3]);
  arguments.trace = argc > 4;
  return arguments;
}

void print(std::size_t bytes, const tools::Timing& timing) {
  const auto [least, most] =
      std::minmax_element(timing.iterations_us.begin(), timing.iterations_us.end());
  fmt::print(
      "{{\"bytes\":{},\"time_us\":{:.3f},\"min_us\":{:.3f},\"max_us\":{:.3f},\"cpu_us\":{:.3f},"
      "\"iterations\":{},\"wrong\":{}}}\n",
      bytes, tools::median(timing.iterations_us), *least, *most, timing.cpu_us,
      timing.iterations_us.size(), timing.wrong);
  std::fflush(stdout);
}

/// MPICH gives each rank a session, which loses the priority that the others have in theirs.
void catch_up() {
  const char* nice = std::getenv("PEERS_AUTOGROUP");  // NOLINT(concurrency-mt-unsafe): no threads
  if (nice != nullptr) std::ofstream("/proc/self/autogroup") << nice;
}

/// A rank that polls and shares its processor with another one waits for whole slices of time.
/// Where there are processors for all, the calling thread of each gets one of its own.
void spread_out(int rank) {
  if (std::getenv("PEERS_SPREAD") == nullptr) return;  // NOLINT(concurrency-mt-unsafe): as above
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(rank), &one);
  if (::sched_setaffinity(0, sizeof(one), &one) != 0) std::perror("mpi_rank: sched_setaffinity");
}

/// How many values were wrong.
std::uint64_t run(std::size_t bytes, const Arguments& arguments, int rank, int size) {
  constexpr auto kType = core::DataType::kFloat32;
  const tools::Pattern own = tools::contribution(kType, core::Reduction::kSum, rank);
  const tools::Pattern expected = tools::expected_result(kType, core::Reduction::kSum, size);
  std::vector<std::byte> values(bytes);
  MpiRank mpi(values);
  int number = 0;
  const auto trace = [&](double microseconds) {
    if (rank != 0 || !arguments.trace) return;
    fmt::print("{} {} {:.3f}\n", bytes, number++, microseconds);
    std::fflush(stdout);
  };
  const auto timing = tools::time_back_to_back(mpi, {values, own, expected}, arguments.pace, trace);
  if (!timing) MPI_Abort(MPI_COMM_WORLD, 1);
  if (rank == 0) print(bytes, *timing);
  return timing->wrong;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "mpi_rank BYTES[,BYTES...] SECONDS ITERATIONS [trace]\n");
    return 2;
  }
  catch_up();
  const Arguments arguments = parse(argc, argv);
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  spread_out(rank);
  std::uint64_t wrong = 0;
  for (const std::size_t bytes : arguments.sizes) wrong += run(bytes, arguments, rank, size);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
