#include "test/transport/fake_mpi.h"

#include <algorithm>
#include <utility>

namespace fasthorovod::transport {
namespace {

constexpr std::size_t kSmall = 4096;

class Sending final : public MpiTransfer {
 public:
  Sending(FakeMpiNetwork& network, std::shared_ptr<FakeBlock> block)
      : network_(network), block_(std::move(block)) {}
  core::Result<bool> done() override { return network_.is_taken(*block_); }

 private:
  FakeMpiNetwork& network_;
  const std::shared_ptr<FakeBlock> block_;
};

// Done only when it is looked at a second time.
class Receiving final : public MpiTransfer {
 public:
  core::Result<bool> done() override { return std::exchange(looked_, true); }

 private:
  bool looked_ = false;
};

class Arriving final : public MpiArrival {
 public:
  Arriving(FakeMpiNetwork& network, std::shared_ptr<FakeBlock> block)
      : network_(network), block_(std::move(block)) {}
  [[nodiscard]] int peer() const override { return block_->from; }
  [[nodiscard]] std::size_t bytes() const override { return block_->bytes.size(); }
  core::Result<std::unique_ptr<MpiTransfer>> receive(std::span<std::byte> into) override {
    network_.take(*block_, into);
    return std::unique_ptr<MpiTransfer>(std::make_unique<Receiving>());
  }

 private:
  FakeMpiNetwork& network_;
  const std::shared_ptr<FakeBlock> block_;
};

}  // namespace

void FakeMpiNetwork::post(int from, int to, int tag, Letter letter) {
  const std::lock_guard lock(mutex_);
  letters_[{from, to, tag}].push_back(std::move(letter));
  ++posted_;
  changed_.notify_all();
}

void FakeMpiNetwork::await_posts(std::size_t count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return posted_ >= count; });
}

std::optional<Letter> FakeMpiNetwork::collect(int from, int to, int tag) {
  const std::lock_guard lock(mutex_);
  auto& queue = letters_[{from, to, tag}];
  if (queue.empty()) return std::nullopt;
  Letter letter = std::move(queue.front());
  queue.pop_front();
  return letter;
}

std::shared_ptr<FakeBlock> FakeMpiNetwork::send(int from, int to, std::span<const std::byte> bytes,
                                                bool now) {
  auto block = std::make_shared<FakeBlock>();
  block->from = from;
  block->bytes = bytes;
  if (now || bytes.size() <= kSmall) {
    block->copy.assign(bytes.begin(), bytes.end());
    block->bytes = block->copy;
    block->taken = true;
  }
  const std::lock_guard lock(mutex_);
  blocks_[to].push_back(block);
  return block;
}

std::shared_ptr<FakeBlock> FakeMpiNetwork::next(int to) {
  const std::lock_guard lock(mutex_);
  auto& queue = blocks_[to];
  if (queue.empty()) return nullptr;
  auto block = std::move(queue.front());
  queue.pop_front();
  return block;
}

void FakeMpiNetwork::take(FakeBlock& block, std::span<std::byte> into) {
  std::ranges::copy(block.bytes, into.begin());
  const std::lock_guard lock(mutex_);
  block.taken = true;
}

bool FakeMpiNetwork::is_taken(const FakeBlock& block) {
  const std::lock_guard lock(mutex_);
  return block.taken;
}

core::Result<std::unique_ptr<MpiTransfer>> FakeBlocks::send_block(
    int peer, std::span<const std::byte> block) {
  return std::unique_ptr<MpiTransfer>(
      std::make_unique<Sending>(network_, network_.send(rank_, peer, block)));
}

core::Result<std::unique_ptr<MpiArrival>> FakeBlocks::next_block() {
  auto block = network_.next(rank_);
  if (block == nullptr) return std::unique_ptr<MpiArrival>();
  return std::unique_ptr<MpiArrival>(std::make_unique<Arriving>(network_, std::move(block)));
}

}  // namespace fasthorovod::transport
