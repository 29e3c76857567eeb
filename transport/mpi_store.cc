#include "transport/mpi_store.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

#include "core/wire.h"
#include "transport/mpi_tags.h"

namespace fasthorovod::transport {
namespace {

using core::Error;
using core::ErrorCode;

constexpr std::chrono::milliseconds kLookAgain{1};

}  // namespace

core::Status MpiStore::put(const std::string& key, const std::string& value,
                           core::TimePoint /*deadline*/) {
  if (mail_.rank() != 0) {
    return Error{ErrorCode::kInternal, "only rank 0 puts something into the store over MPI"};
  }
  values_[key] = value;
  core::WireWriter writer;
  writer.u64(attempt_);
  writer.text(key);
  writer.text(value);
  const Letter letter = std::move(writer).take();
  for (int rank = 1; rank < mail_.size(); ++rank) {
    if (auto sent = mail_.send(rank, kStoreTag, letter); !sent) return sent;
  }
  return {};
}

core::Result<std::string> MpiStore::get(const std::string& key, core::TimePoint deadline) {
  while (true) {
    if (auto taken = take_in(); !taken) return std::move(taken).error();
    if (const auto found = values_.find(key); found != values_.end()) return found->second;
    if (core::Clock::now() >= deadline) {
      return Error{ErrorCode::kTimedOut,
                   fmt::format("waiting for \"{}\" over MPI: the time limit passed", key)};
    }
    std::this_thread::sleep_for(kLookAgain);
  }
}

core::Status MpiStore::take_in() {
  while (mail_.rank() != 0) {
    auto letter = mail_.receive(0, kStoreTag);
    if (!letter) return std::move(letter).error();
    if (!letter->has_value()) break;
    core::WireReader reader(**letter);
    const std::uint64_t attempt = reader.u64();
    std::string key = reader.text();
    std::string value = reader.text();
    if (!reader.ok()) return Error{ErrorCode::kProtocol, "rank 0 sent nonsense over MPI", 0};
    if (attempt == attempt_) values_[std::move(key)] = std::move(value);
  }
  return {};
}

}  // namespace fasthorovod::transport
