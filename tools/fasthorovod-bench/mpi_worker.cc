// All-reduces of MPI for fasthorovod-bench, which starts this program under mpirun and talks to its
// first rank over standard input and output, a line a message:
//
//     here 0            it runs, with as many ranks as were asked for (the argument)
//     run COUNT TYPE OP WARM_UP ITERATIONS ...   as gloo_worker.py has it; so is the answer
//
// The other ranks are told by MPI. While nothing is asked of them they sleep and look again, since
// MPI's own waiting would take the processors from whom it is compared with.
#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/data_type.h"
#include "core/reduction.h"
#include "tools/fasthorovod-bench/contestant.h"
#include "tools/fasthorovod-bench/pattern.h"

namespace {

using fasthorovod::core::DataType;
using fasthorovod::core::Reduction;
using fasthorovod::tools::Sample;
using fasthorovod::tools::Turn;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookAgain{1};
constexpr int kOrderTag = 1;
constexpr std::uint64_t kMostElements = 1U << 31U;  // counts are ints

/// What the first rank tells the others; a count of 0 ends them.
using Order = std::array<std::int64_t, 5>;

MPI_Datatype mpi_type(DataType type) {
  switch (type) {
    case DataType::kUint8:
      return MPI_UINT8_T;
    case DataType::kInt8:
      return MPI_INT8_T;
    case DataType::kUint16:
      return MPI_UINT16_T;
    case DataType::kInt16:
      return MPI_INT16_T;
    case DataType::kUint32:
      return MPI_UINT32_T;
    case DataType::kInt32:
      return MPI_INT32_T;
    case DataType::kUint64:
      return MPI_UINT64_T;
    case DataType::kInt64:
      return MPI_INT64_T;
    case DataType::kFloat32:
      return MPI_FLOAT;
    case DataType::kFloat64:
      return MPI_DOUBLE;
    default:
      return MPI_DATATYPE_NULL;
  }
}

MPI_Op mpi_operation(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return MPI_SUM;
    case Reduction::kProduct:
      return MPI_PROD;
    case Reduction::kMin:
      return MPI_MIN;
    case Reduction::kMax:
      return MPI_MAX;
    default:
      return MPI_OP_NULL;
  }
}

/// What each rank gives, for all of them: time and errors of an iteration.
Sample exchange(std::array<double, 2> own) {
  double slowest = 0;
  double wrong = 0;
  MPI_Allreduce(&own[0], &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(&own[1], &wrong, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return {slowest, static_cast<std::uint64_t>(wrong)};
}

/// The loop of contestant.h.
std::vector<Sample> run(const Turn& turn, int rank, int size) {
  const auto own = fasthorovod::tools::contribution(turn.type, turn.reduction, rank);
  const auto expected = fasthorovod::tools::expected_result(turn.type, turn.reduction, size);
  std::vector<std::byte> values(turn.count * fasthorovod::core::size_of(turn.type));
  std::vector<Sample> samples;
  std::array<double, 2> last{};
  for (int i = -turn.warm_up; i <= turn.iterations; ++i) {
    if (i < turn.iterations) fasthorovod::tools::fill(values, own);
    const Sample sample = exchange(last);
    if (i > 0) samples.push_back(sample);
    if (i == turn.iterations) break;
    const auto start = Clock::now();
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(turn.count), mpi_type(turn.type),
                  mpi_operation(turn.reduction), MPI_COMM_WORLD);
    const std::chrono::duration<double, std::micro> took = Clock::now() - start;
    const double before = i > 0 ? 0 : last[1];
    last = {took.count(),
            before + static_cast<double>(fasthorovod::tools::count_wrong(values, expected))};
  }
  return samples;
}

Order to_order(const Turn& turn) {
  return {static_cast<std::int64_t>(turn.count), static_cast<std::int64_t>(turn.type),
          static_cast<std::int64_t>(turn.reduction), turn.warm_up, turn.iterations};
}

Turn to_turn(const Order& order) {
  return {.count = static_cast<std::uint64_t>(order[0]),
          .type = static_cast<DataType>(order[1]),
          .reduction = static_cast<Reduction>(order[2]),
          .warm_up = static_cast<int>(order[3]),
          .iterations = static_cast<int>(order[4])};
}

void give(const Order& order, int size) {
  for (int rank = 1; rank < size; ++rank) {
    MPI_Send(order.data(), static_cast<int>(order.size()), MPI_INT64_T, rank, kOrderTag,
             MPI_COMM_WORLD);
  }
}

Order await_order() {
  for (int arrived = 0; arrived == 0;) {
    MPI_Iprobe(0, kOrderTag, MPI_COMM_WORLD, &arrived, MPI_STATUS_IGNORE);
    if (arrived == 0) std::this_thread::sleep_for(kLookAgain);
  }
  Order order{};
  MPI_Recv(order.data(), static_cast<int>(order.size()), MPI_INT64_T, 0, kOrderTag, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
  return order;
}

template <typename T>
std::optional<T> named(const std::string& name, int values,
                       std::optional<T> (*from)(std::uint8_t)) {
  for (int value = 0; value < values; ++value) {
    const std::optional<T> found = from(static_cast<std::uint8_t>(value));
    if (found && fasthorovod::core::to_string(*found) == name) return found;
  }
  return std::nullopt;
}

/// Nothing: MPI has no such all-reduce; `why` says so.
std::optional<Turn> parse(const std::string& line, std::string& why) {
  constexpr int kWireValues = 256;
  std::istringstream words(line);
  std::string word;
  std::string type;
  std::string reduction;
  Turn turn;
  words >> word >> turn.count >> type >> reduction >> turn.warm_up >> turn.iterations;
  const auto known_type =
      named<DataType>(type, kWireValues, fasthorovod::core::data_type_from_wire);
  const auto known_reduction =
      named<Reduction>(reduction, kWireValues, fasthorovod::core::reduction_from_wire);
  turn.type = known_type.value_or(DataType::kBool);
  turn.reduction = known_reduction.value_or(Reduction::kAverage);
  why = fmt::format("MPI has no {} of {} {}", reduction, turn.count, type);
  const bool known = mpi_type(turn.type) != MPI_DATATYPE_NULL &&
                     mpi_operation(turn.reduction) != MPI_OP_NULL && turn.count < kMostElements;
  return known ? std::optional(turn) : std::nullopt;
}

std::string words_for(const std::vector<Sample>& samples) {
  std::string text = "took";
  for (const Sample& sample : samples) {
    text += fmt::format(" {:.3f}:{}", sample.microseconds, sample.wrong);
  }
  return text;
}

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void lead(int size, const char* wanted) {
  if (std::to_string(size) != wanted) {
    say(fmt::format("error mpirun started {} ranks, not {}", size, wanted));
    return;
  }
  say("here 0");
  for (std::string line; std::getline(std::cin, line);) {
    std::string why;
    const std::optional<Turn> turn = parse(line, why);
    if (!turn) {
      say("error " + why);
      return;
    }
    give(to_order(*turn), size);
    say(words_for(run(*turn, 0, size)));
  }
}

void follow(int rank, int size) {
  for (Order order = await_order(); order[0] != 0; order = await_order()) {
    run(to_turn(order), rank, size);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0) {
    lead(size, argc > 1 ? argv[1] : "");
    give({}, size);
  } else {
    follow(rank, size);
  }
  MPI_Finalize();
  return 0;
}
