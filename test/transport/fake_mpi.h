// MPI between ranks of one process: letters and blocks as they go between processes. Small blocks
// leave at once; the bytes of larger ones stay with their sender until the receiver takes them, as
// MPI's do. Thread: any.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "transport/mpi_blocks.h"
#include "transport/mpi_mail.h"

namespace fasthorovod::transport {

/// A block on its way.
struct FakeBlock {
  int from = 0;
  std::vector<std::byte> copy;
  std::span<const std::byte> bytes;  // of the copy, or of the sender's memory
  bool taken = false;
};

/// What is on its way between the ranks.
class FakeMpiNetwork final {
 public:
  explicit FakeMpiNetwork(int size) : size_(size) {}

  [[nodiscard]] int size() const { return size_; }
  void post(int from, int to, int tag, Letter letter);
  std::optional<Letter> collect(int from, int to, int tag);
  /// Waits until so many letters were posted since the start.
  void await_posts(std::size_t count);

  /// `now`: it leaves at once, whatever its size.
  std::shared_ptr<FakeBlock> send(int from, int to, std::span<const std::byte> bytes,
                                  bool now = false);
  std::shared_ptr<FakeBlock> next(int to);
  void take(FakeBlock& block, std::span<std::byte> into);
  bool is_taken(const FakeBlock& block);

 private:
  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t posted_ = 0;
  std::map<std::tuple<int, int, int>, std::deque<Letter>> letters_;
  std::map<int, std::deque<std::shared_ptr<FakeBlock>>> blocks_;  // by receiver
};

/// One rank of the network.
class FakeMail final : public MpiMail {
 public:
  FakeMail(FakeMpiNetwork& network, int rank) : network_(network), rank_(rank) {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return network_.size(); }
  core::Status send(int peer, int tag, std::span<const std::byte> letter) override {
    network_.post(rank_, peer, tag, {letter.begin(), letter.end()});
    return {};
  }
  core::Result<std::optional<Letter>> receive(int peer, int tag) override {
    return network_.collect(peer, rank_, tag);
  }

 private:
  FakeMpiNetwork& network_;
  const int rank_;
};

/// The same for blocks.
class FakeBlocks final : public MpiBlocks {
 public:
  FakeBlocks(FakeMpiNetwork& network, int rank) : network_(network), rank_(rank) {}

  core::Result<std::unique_ptr<MpiTransfer>> send_block(int peer,
                                                        std::span<const std::byte> block) override;
  core::Result<std::unique_ptr<MpiArrival>> next_block() override;

 private:
  FakeMpiNetwork& network_;
  const int rank_;
};

}  // namespace fasthorovod::transport
