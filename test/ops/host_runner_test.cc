#include "ops/host_runner.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <numeric>
#include <optional>
#include <random>

#include "ops/host_layout.h"
#include "test/ops/host_allreduce.h"
#include "transport/arena_heap.h"

namespace fasthorovod::ops {
namespace {

using core::DataType;
using core::Error;
using core::ErrorCode;
using core::Reduction;
using core::Status;

/// One rank's side of one operation, without a thread.
struct Side {
  Side(std::size_t bytes_of_area, std::size_t bytes_lent)
      : area_bytes(bytes_of_area),
        arena(*transport::Arena::create(HostTable::bytes() + area_bytes + bytes_lent)),
        table(arena.bytes()) {}

  [[nodiscard]] std::span<std::byte> area() const {
    return arena.bytes().subspan(HostTable::bytes(), area_bytes);
  }
  [[nodiscard]] std::span<std::byte> lent() const {
    return arena.bytes().subspan(HostTable::bytes() + area_bytes);
  }

  const std::size_t area_bytes;
  transport::Arena arena;
  HostTable table;
  std::optional<HostRunner> runner;
  std::uint32_t open = 0;  // gates of that many pieces
  int told_all_here = 0;
  int copies_in = 0;  // steps
  std::vector<Status> outcomes;
  std::vector<Disagreement> disagreements;
};

/// All ranks of one operation in one thread, taking their steps in a random order; each begins at a
/// random moment.
class Simulation {
 public:
  explicit Simulation(HostAllreduceSpec spec)
      : allreduce_(std::move(spec)), random_(allreduce_.spec().seed) {
    for (int position = 0; position < allreduce_.size(); ++position) {
      sides_.push_back(std::make_unique<Side>(allreduce_.layout(position).area_bytes(),
                                              allreduce_.lent_bytes(position)));
      allreduce_.lend(position, sides_.back()->lent());
    }
    exchanged_.resize(allreduce_.layout(0).pieces);
  }

  Side& side(int position) { return *sides_[static_cast<std::size_t>(position)]; }
  [[nodiscard]] int size() const { return allreduce_.size(); }
  [[nodiscard]] HostLayout layout(int position) const { return allreduce_.layout(position); }
  void check(int position) const { allreduce_.check(position); }

  void begin(int position, std::uint32_t fingerprint = 77) {
    Side& self = side(position);
    HostOperation operation = allreduce_.operation(position, self.area());
    operation.fingerprint = fingerprint;
    operation.done = [&self](const Status& status) { self.outcomes.push_back(status); };
    std::vector<HostSeat> seats;
    const HostLayout& layout = operation.layout;
    for (const int mate : layout.hosts[static_cast<std::size_t>(layout.host)]) {
      seats.push_back({allreduce_.member(mate), side(mate).arena.bytes()});
    }
    self.runner.emplace(std::move(operation), self.table, HostTable::bytes(), seats);
  }

  /// One round of one rank: looks, and runs a step when there is one.
  void turn(int position) {
    Side& self = side(position);
    if (!self.runner) return;
    HostNews news;
    self.runner->look(news);
    hear(self, news);
    const std::optional<HostStep> step = self.runner->next();
    if (!step) return;
    if (step->kind == HostStep::Kind::kCopyIn) ++self.copies_in;
    self.runner->run(*step);
    HostNews outcome;
    self.runner->ran(*step, outcome);
    hear(self, outcome);
  }

  /// Random turns, and transfers of pieces whose gates are open, until all have ended.
  void run() {
    for (int turns = 0; turns < 1'000'000; ++turns) {
      const int position = pick();
      if (!side(position).runner) begin(position);
      turn(position);
      transfer();
      if (std::ranges::all_of(sides_, [](const auto& s) { return s->outcomes.size() == 1; })) {
        return;
      }
    }
    FAIL() << "stuck: " << allreduce_.spec().elements << " elements, seed "
           << allreduce_.spec().seed;
  }

  /// Enough turns for everybody to see what the others published.
  void settle() {
    for (int round = 0; round < 3; ++round) {
      for (int position = 0; position < size(); ++position) turn(position);
    }
  }

  void transfer() {
    for (std::uint32_t piece = 0; piece < exchanged_.size(); ++piece) {
      const bool is_open =
          std::ranges::all_of(sides_, [&](const auto& s) { return s->open > piece; });
      if (exchanged_[piece] || !is_open || random_() % 3 != 0) continue;
      std::vector<std::span<std::byte>> areas;
      for (const auto& s : sides_) areas.push_back(s->area());
      allreduce_.exchange(piece, areas);
      exchanged_[piece] = true;
      for (const auto& s : sides_) s->runner->piece_done(piece);
    }
  }

 private:
  int pick() { return static_cast<int>(random_() % sides_.size()); }

  static void hear(Side& self, const HostNews& news) {
    for (const HostGates& gates : news.gates) {
      if (gates.pieces == 0) ++self.told_all_here;
      EXPECT_TRUE(gates.pieces == 0 || gates.pieces == self.open + 1);
      self.open = gates.pieces;
    }
    for (const Disagreement& found : news.disagreements) self.disagreements.push_back(found);
    for (const auto& end : news.ends) end.done(end.status);
  }

  HostAllreduce allreduce_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Side>> sides_;
  std::vector<bool> exchanged_;
};

void check_run(const HostAllreduceSpec& spec) {
  Simulation ranks(spec);
  ranks.run();
  ranks.settle();
  for (int position = 0; position < ranks.size(); ++position) {
    ASSERT_EQ(ranks.side(position).outcomes.size(), 1U);
    EXPECT_TRUE(ranks.side(position).outcomes[0]);
    EXPECT_TRUE(ranks.side(position).runner->releasable()) << position;
    EXPECT_EQ(ranks.side(position).told_all_here, spec.hosts.size() > 1 ? 1 : 0);
    ranks.check(position);
  }
}

TEST(HostRunner, ReducesEveryTypeInAnyOrderOfSteps) {
  std::mt19937_64 random(1);
  std::uint64_t seed = 1;
  for (const DataType type : all_data_types()) {
    for (const Reduction reduction : reductions_of(type)) {
      const int ranks = static_cast<int>(random() % 6) + 1;
      Hosts host{{}};
      for (int rank = 0; rank < ranks; ++rank) host[0].push_back(rank);
      check_run({.hosts = host,
                 .elements = random() % (2 * kSmallBytes) / core::size_of(type),
                 .type = type,
                 .reduction = reduction,
                 .in_place = seed % 2 == 0,
                 .seed = seed,
                 .largest_area = 1024 + random() % 8192});
      ++seed;
    }
  }
}

TEST(HostRunner, ReducesAcrossHostsHoweverRanksAreSpread) {
  std::mt19937_64 random(2);
  std::uint64_t seed = 1;
  for (const Hosts& hosts : host_groups()) {
    for (const std::uint64_t elements : {0U, 1U, 5U, 64U, 1000U}) {
      check_run({.hosts = hosts,
                 .elements = elements,
                 .in_place = seed % 2 == 0,
                 .seed = seed,
                 .largest_area = 256 + random() % 2048});
      ++seed;
    }
  }
}

std::vector<Lent> any_lent(int ranks, std::mt19937_64& random) {
  std::vector<Lent> lent;
  for (int rank = 0; rank < ranks; ++rank) lent.push_back({random() % 2 == 0, random() % 2 == 0});
  return lent;
}

TEST(HostRunner, ReducesTheSameWhereverBuffersLie) {
  std::mt19937_64 random(3);
  std::uint64_t seed = 1;
  const std::vector<DataType> types = all_data_types();
  for (const Hosts& hosts : host_groups()) {
    for (const std::uint64_t elements : {0U, 7U, 5000U, 40'011U}) {
      const DataType type = types[seed % types.size()];
      check_run({.hosts = hosts,
                 .elements = elements,
                 .type = type,
                 .in_place = random() % 2 == 0,
                 .lent = any_lent(count_ranks(hosts), random),
                 .beyond_caches = seed % 4 != 0,
                 .seed = seed,
                 .largest_area = 4096 + random() % 32'768});
      ++seed;
    }
  }
}

TEST(HostRunner, CopiesNothingInOfAnInputInTheArena) {
  for (const bool in_place : {false, true}) {
    Simulation ranks({.hosts = {{0, 1, 2}},
                      .elements = 50'000,
                      .in_place = in_place,
                      .lent = {{true, true}, {}, {true, true}}});
    ranks.run();
    for (int position = 0; position < 3; ++position) {
      ranks.check(position);
      EXPECT_EQ(ranks.side(position).copies_in > 0, position == 1) << position;
    }
  }
}

// It may use its memory for something else from then on.
TEST(HostRunner, DoesNotTrustWhatItReadOfAMateThatFailedMeanwhile) {
  Simulation ranks({.hosts = {{0, 1}}, .elements = 50'000, .lent = {{}, {true, true}}});
  ranks.begin(0);
  ranks.begin(1);
  std::optional<HostStep> step;
  while (!step || step->kind != HostStep::Kind::kReduce) {
    ranks.turn(1);
    ranks.turn(0);
    step = ranks.side(0).runner->next();
  }
  HostRunner& reader = *ranks.side(0).runner;
  reader.run(*step);
  ranks.side(1).runner->fail({ErrorCode::kTimedOut, "late", 0});
  ranks.turn(1);
  ASSERT_EQ(ranks.side(1).outcomes.size(), 1U);
  std::ranges::fill(ranks.side(1).lent(), std::byte{0});
  HostNews news;
  reader.ran(*step, news);
  EXPECT_FALSE(reader.next());
  for (int round = 0; round < 20; ++round) ranks.settle();
  EXPECT_TRUE(ranks.side(0).outcomes.empty());
  EXPECT_EQ(reader.awaited(), std::vector<int>{1});
  reader.fail({ErrorCode::kTimedOut, "late", 1});
  ranks.settle();
  ASSERT_EQ(ranks.side(0).outcomes.size(), 1U);
  EXPECT_FALSE(ranks.side(0).outcomes[0]);
  EXPECT_TRUE(reader.releasable());
}

/// Two ranks that lend all, of which rank 0 can reduce next.
class LentOutput : public testing::Test {
 protected:
  LentOutput() {
    ranks_.begin(0);
    ranks_.begin(1);
    HostNews news;
    lender().look(news);
    writer().look(news);
    step_ = writer().next();
  }

  void SetUp() override {
    ASSERT_TRUE(step_);
    ASSERT_EQ(step_->kind, HostStep::Kind::kReduce);
  }

  HostRunner& writer() { return *ranks_.side(0).runner; }
  HostRunner& lender() { return *ranks_.side(1).runner; }
  const std::vector<Status>& outcomes() { return ranks_.side(1).outcomes; }
  std::span<std::byte> memory() { return ranks_.side(1).lent(); }
  transport::Arena other_mapping() {
    const int descriptor = ::dup(ranks_.side(1).arena.fd());
    return *transport::Arena::open(transport::FileDescriptor(descriptor));
  }

  /// What mates write of the lender's output.
  std::span<std::byte> pages() {
    const HostOperation& operation = lender().operation();
    const HostLoan loan = loan_of(operation, ranks_.side(1).arena.bytes());
    const auto [offset, bytes] = loan.pages(operation.output.size());
    return operation.output.subspan(offset, bytes);
  }

  /// As if rank 0 had been stopped amid a step.
  void set_writes(std::uint32_t writes) {
    const auto sighting = ranks_.side(0).table.find(writer().key());
    const_cast<HostEntry*>(sighting->entry)->writes.store(writes);
  }

  Simulation ranks_{{.hosts = {{0, 1}}, .elements = 50'000, .lent = {{true, true}, {true, true}}}};
  std::optional<HostStep> step_;
};

bool all_are(std::span<const std::byte> bytes, std::byte value) {
  return std::ranges::all_of(bytes, [value](std::byte byte) { return byte == value; });
}

TEST_F(LentOutput, IsWrittenByTheOwnerOfAStripe) {
  const ByteSpan stripe = ranks_.layout(0).stripe(step_->block.piece, step_->block.stripe);
  const auto part = [&](HostRunner& runner) {
    // Whole pages in any case.
    return runner.operation().output.subspan(stripe.offset + 4096, stripe.bytes - 8192);
  };
  std::ranges::fill(part(lender()), std::byte{0x5a});
  writer().run(*step_);
  EXPECT_FALSE(all_are(part(writer()), std::byte{0x5a}));
  EXPECT_TRUE(std::ranges::equal(part(lender()), part(writer())));
}

TEST_F(LentOutput, IsNotWrittenOnceItsRankHasFailed) {
  lender().fail({ErrorCode::kTimedOut, "late", 0});
  ranks_.turn(1);
  ASSERT_EQ(outcomes().size(), 1U);
  std::ranges::fill(memory(), std::byte{0x5a});
  writer().run(*step_);
  EXPECT_TRUE(all_are(memory(), std::byte{0x5a}));
  HostNews news;
  writer().ran(*step_, news);
  EXPECT_FALSE(writer().next());
  EXPECT_EQ(news.bells.size(), 1U);  // the lender may have waited for the end of this step
}

TEST_F(LentOutput, IsNotHandedBackWhileAMateWritesToIt) {
  set_writes(1);
  lender().fail({ErrorCode::kTimedOut, "late", 0});
  for (int round = 0; round < 3; ++round) ranks_.turn(1);
  EXPECT_TRUE(outcomes().empty());
  EXPECT_EQ(lender().awaited(), std::vector<int>{0});
  EXPECT_FALSE(lender().next());
  set_writes(0);
  ranks_.turn(1);
  ASSERT_EQ(outcomes().size(), 1U);
  EXPECT_EQ(outcomes()[0].error().message, "late");
}

TEST_F(LentOutput, IsTakenFromWhoStillWritesToItWhenTheWorldEnds) {
  const transport::Arena other = other_mapping();
  set_writes(1);
  HostNews news;
  lender().give_up({ErrorCode::kPeerLost, "gone", 0}, news);
  ASSERT_EQ(news.ends.size(), 1U);
  EXPECT_EQ(news.ends[0].status.error().message, "gone");
  ASSERT_GT(pages().size(), 40U * 4096);
  std::ranges::fill(pages(), std::byte{1});
  std::ranges::fill(other.bytes().subspan(HostTable::bytes()), std::byte{2});
  EXPECT_TRUE(all_are(pages(), std::byte{1}));
}

TEST_F(LentOutput, StaysSharedWhenNobodyWritesToItAsTheWorldEnds) {
  const transport::Arena other = other_mapping();
  HostNews news;
  lender().give_up({ErrorCode::kPeerLost, "gone", 0}, news);
  ASSERT_EQ(news.ends.size(), 1U);
  std::ranges::fill(other.bytes().subspan(HostTable::bytes()), std::byte{2});
  EXPECT_TRUE(all_are(pages(), std::byte{2}));
}

TEST(HostRunner, KeepsAnOutputThatMatesStillReadUntilTheyHaveCopiedIt) {
  Simulation ranks({.hosts = {{0, 1}}, .elements = 20'000, .lent = {{true, true}, {}}});
  ranks.begin(0);
  ranks.begin(1);
  const auto copies_out = [&] {
    const auto step = ranks.side(1).runner->next();
    return step && step->kind == HostStep::Kind::kCopyOut;
  };
  while (!copies_out()) {
    ranks.turn(1);
    ranks.turn(0);
  }
  for (int round = 0; round < 20; ++round) ranks.turn(0);
  EXPECT_TRUE(ranks.side(0).outcomes.empty());
  EXPECT_EQ(ranks.side(0).runner->awaited(), std::vector<int>{1});
  for (int round = 0; round < 20; ++round) ranks.settle();
  ASSERT_EQ(ranks.side(0).outcomes.size(), 1U);
  ranks.check(0);
  ranks.check(1);
}

TEST(HostRunner, CutsLargeStripesIntoBlocks) {
  check_run({.hosts = {{0, 1}, {2}}, .elements = 400'000, .seed = 5, .largest_area = 16U << 20});
}

TEST(HostRunner, ReadsNothingOfAMateThatBelievesSomethingElse) {
  Simulation ranks({.hosts = {{0, 1, 2}}, .elements = 100});
  ranks.begin(0);
  ranks.begin(1, 78);
  ranks.begin(2);
  for (int round = 0; round < 20; ++round) ranks.settle();
  for (int position = 0; position < 3; ++position) {
    EXPECT_TRUE(ranks.side(position).outcomes.empty());
    EXPECT_EQ(ranks.side(position).disagreements.size(), position == 1 ? 2U : 1U);
  }
  const Disagreement& found = ranks.side(2).disagreements.at(0);
  EXPECT_EQ(found.peer, 1);
  EXPECT_EQ(found.group, 1U);
  EXPECT_EQ(found.sequence, 1U);
  EXPECT_EQ(found.peers, "all-reduce of 100");
}

TEST(HostRunner, StaysUntilAllWhoBeganHaveFailedToo) {
  Simulation ranks({.hosts = {{0, 1, 2}}, .elements = 100});
  ranks.begin(0);
  ranks.begin(1);
  ranks.settle();
  ranks.side(0).runner->fail({ErrorCode::kTimedOut, "late", 2});
  ranks.settle();
  ASSERT_EQ(ranks.side(0).outcomes.size(), 1U);
  EXPECT_EQ(ranks.side(0).outcomes[0].error().code, ErrorCode::kTimedOut);
  EXPECT_FALSE(ranks.side(0).runner->releasable());
  ranks.side(1).runner->fail({ErrorCode::kTimedOut, "late", 2});
  ranks.settle();
  EXPECT_TRUE(ranks.side(0).runner->releasable());
  EXPECT_TRUE(ranks.side(1).runner->releasable());
}

TEST(HostRunner, AMateThatComesAfterAFailureFindsItOrNothing) {
  for (const bool retired : {false, true}) {
    Simulation ranks({.hosts = {{0, 1}}, .elements = 100});
    ranks.begin(0);
    ranks.side(0).runner->fail({ErrorCode::kTimedOut, "late", 1});
    ranks.settle();
    ASSERT_TRUE(ranks.side(0).runner->releasable());
    if (retired) {
      ranks.side(0).runner->retire();
      ranks.side(0).runner.reset();
    }
    ranks.begin(1);
    ranks.settle();
    EXPECT_TRUE(ranks.side(1).outcomes.empty());
    ranks.side(1).runner->fail({ErrorCode::kTimedOut, "late", 1});
    ranks.settle();
    ASSERT_EQ(ranks.side(1).outcomes.size(), 1U);
    EXPECT_TRUE(ranks.side(1).runner->releasable());
  }
}

TEST(HostRunner, KeepsItsAreaWhileLanesMayTouchIt) {
  Simulation ranks({.hosts = {{0}, {1}}, .elements = 100});
  ranks.begin(0);
  ranks.settle();
  ranks.side(0).runner->fail({ErrorCode::kTimedOut, "late", 1});
  ranks.settle();
  ASSERT_EQ(ranks.side(0).outcomes.size(), 1U);
  EXPECT_FALSE(ranks.side(0).runner->releasable());
  ranks.side(0).runner->transfers_ended();
  EXPECT_TRUE(ranks.side(0).runner->releasable());
}

/// A rank that runs one small sum of float32 after another, in two entries at most.
class Repeater {
 public:
  static constexpr std::size_t kCount = 100;

  Repeater(int place, int ranks) : place_(place), layout_(layout_of(place, ranks)) {}

  [[nodiscard]] std::span<std::byte> arena() { return arena_.bytes(); }
  [[nodiscard]] std::uint64_t done() const { return done_; }
  [[nodiscard]] const std::deque<HostRunner>& runners() const { return runners_; }

  void turn(const std::vector<HostSeat>& seats) {
    if (running_ == nullptr) return begin(seats);
    HostNews news;
    running_->look(news);
    if (const auto step = running_->next()) {
      running_->run(*step);
      running_->ran(*step, news);
    }
    EXPECT_TRUE(news.disagreements.empty());
    EXPECT_TRUE(news.ends.empty()) << "nobody asked for it";
    if (!running_->ended()) return;
    EXPECT_TRUE(running_->outcome());
    running_ = nullptr;
    ++done_;
    const auto ranks = static_cast<float>(seats.size());
    const float sum = ranks * static_cast<float>(done_) + ranks * (ranks - 1) / 2;
    EXPECT_EQ(values_, std::vector<float>(kCount, sum)) << "operation " << done_;
  }

 private:
  static HostLayout layout_of(int place, int ranks) {
    std::vector<int> all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    return lay_out({all}, place, kCount, sizeof(float), 1U << 20);
  }

  void begin(const std::vector<HostSeat>& seats) {
    std::ranges::fill(values_, static_cast<float>(done_ + 1) + static_cast<float>(place_));
    const auto output = std::as_writable_bytes(std::span(values_));
    for (HostRunner& runner : runners_) {
      HostNews none;
      runner.look(none);
      if (!runner.can_begin_next()) continue;
      runner.begin_next({done_ + 1, fingerprint(), output, output});
      running_ = &runner;
      return;
    }
    ASSERT_LT(runners_.size(), 2U) << "mates are through with the one before the last";
    HostOperation operation;
    operation.sequence = done_ + 1;
    operation.fingerprint = fingerprint();
    operation.layout = layout_;
    operation.input = operation.output = output;
    operation.type = DataType::kFloat32;
    const std::size_t offset = HostTable::bytes() + runners_.size() * 4096;
    operation.area = arena().subspan(offset, layout_.area_bytes());
    running_ = &runners_.emplace_back(std::move(operation), table_, offset, seats);
  }

  [[nodiscard]] std::uint32_t fingerprint() const { return static_cast<std::uint32_t>(done_ * 7); }

  const int place_;
  const HostLayout layout_;
  transport::Arena arena_ = *transport::Arena::create(HostTable::bytes() + 2 * 4096);
  HostTable table_{arena_.bytes()};
  std::vector<float> values_ = std::vector<float>(kCount);
  std::deque<HostRunner> runners_;
  HostRunner* running_ = nullptr;
  std::uint64_t done_ = 0;
};

TEST(HostRunner, RunsTheNextSmallOperationsWithWhatItHas) {
  for (int ranks = 2; ranks <= 4; ++ranks) {
    std::mt19937_64 random(static_cast<std::uint64_t>(ranks));
    std::deque<Repeater> repeaters;
    std::vector<HostSeat> seats;
    for (int place = 0; place < ranks; ++place) {
      seats.push_back({place, repeaters.emplace_back(place, ranks).arena()});
    }
    for (int turn = 0; turn < 20'000; ++turn) {
      repeaters[random() % repeaters.size()].turn(seats);
      if (testing::Test::HasFailure()) return;
    }
    for (const Repeater& repeater : repeaters) EXPECT_GT(repeater.done(), 500U);
  }
}

TEST(HostRunner, KeepsNothingOfWhatFailedOrIsLarge) {
  Simulation large({.hosts = {{0, 1}}, .elements = 2 * kSmallBytes});
  large.run();
  large.settle();
  EXPECT_TRUE(large.side(0).runner->releasable());
  EXPECT_FALSE(large.side(0).runner->can_begin_next());
  Simulation small({.hosts = {{0, 1}}, .elements = 100});
  small.run();
  small.settle();
  EXPECT_TRUE(small.side(0).runner->can_begin_next());
  Simulation failed({.hosts = {{0, 1}}, .elements = 100});
  failed.begin(0);
  failed.side(0).runner->fail({ErrorCode::kTimedOut, "late", 1});
  failed.settle();
  EXPECT_TRUE(failed.side(0).runner->releasable());
  EXPECT_FALSE(failed.side(0).runner->can_begin_next());
}

TEST(HostRunner, NamesTheMatesItWaitsFor) {
  Simulation ranks({.hosts = {{0, 1, 2}}, .members = {4, 6, 9}, .elements = 100});
  ranks.begin(0);
  ranks.settle();
  EXPECT_EQ(ranks.side(0).runner->awaited(), (std::vector<int>{6, 9}));
  EXPECT_EQ(ranks.side(0).runner->absent(), (std::vector<int>{6, 9}));
  ranks.begin(1);
  ranks.settle();
  EXPECT_EQ(ranks.side(0).runner->awaited(), std::vector<int>{9});
  ranks.begin(2);
  ranks.turn(0);
  EXPECT_EQ(ranks.side(0).runner->absent(), std::vector<int>{});
  EXPECT_EQ(ranks.side(0).runner->awaited(), std::vector<int>{9});
  for (int round = 0; round < 5; ++round) ranks.settle();
  EXPECT_EQ(ranks.side(0).runner->awaited(), std::vector<int>{});
}

}  // namespace
}  // namespace fasthorovod::ops
