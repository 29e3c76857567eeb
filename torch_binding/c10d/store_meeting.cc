#include "torch_binding/c10d/store_meeting.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "torch_binding/c10d/hex.h"
#include "transport/secret.h"

namespace fasthorovod::torch_binding {
namespace {

using core::Error;
using core::ErrorCode;
using core::Result;
using core::Status;

// A store can only be waited for until a key is there. Asks stay, since who waits for one that is
// taken away would wait for another, so they are looked at again and again.
constexpr std::chrono::milliseconds kFirstPause{2};
constexpr std::chrono::milliseconds kLongestPause{50};

constexpr const char* kTakenBack = "-";

std::string ask_of(int rank) { return "ask of " + std::to_string(rank); }
std::string answered_of(int rank) { return "answered of " + std::to_string(rank); }
std::string answer_to(int rank, const std::string& nonce) {
  return "answer to " + std::to_string(rank) + " " + nonce;
}

/// The nonce of an ask that has not been answered, if there is one now.
Result<std::optional<std::string>> find_ask(TorchStore& store, int rank) {
  auto nonce = store.find(ask_of(rank));
  if (!nonce || !nonce->has_value()) return nonce;
  auto answered = store.find(answered_of(rank));
  if (!answered) return answered;
  if (**nonce == kTakenBack || *nonce == *answered) return std::optional<std::string>();
  return nonce;
}

/// Waits for it.
Result<std::string> await_ask(TorchStore& store, int rank, core::TimePoint deadline) {
  std::chrono::milliseconds pause = kFirstPause;
  while (true) {
    auto nonce = find_ask(store, rank);
    if (!nonce) return std::move(nonce).error();
    if (nonce->has_value()) return **std::move(nonce);
    if (core::Clock::now() >= deadline) {
      return Error{ErrorCode::kTimedOut, "the time limit passed"};
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

/// Adds those of the ranks from `rank` on that do not ask to the sentence.
Error name_absent(TorchStore& store, int rank, int size, Error error) {
  std::string absent = std::to_string(rank);
  for (int other = rank + 1; other < size; ++other) {
    const auto ask = find_ask(store, other);
    if (ask && !ask->has_value()) absent += ", " + std::to_string(other);
  }
  return std::move(error).with_context("these ranks of the group did not come to meet: " + absent);
}

}  // namespace

Status answer_members(TorchStore& store, int size, const FirstWord& word,
                      core::TimePoint deadline) {
  std::vector<std::string> nonces;
  for (int rank = 1; rank < size; ++rank) {
    auto nonce = await_ask(store, rank, deadline);
    if (!nonce) return name_absent(store, rank, size, std::move(nonce).error());
    nonces.push_back(*std::move(nonce));
  }
  for (int rank = 1; rank < size; ++rank) {
    const std::string& nonce = nonces[static_cast<std::size_t>(rank) - 1];
    if (auto status = store.put(answered_of(rank), nonce, deadline); !status) return status;
    if (auto status = store.put(answer_to(rank, nonce), word.text(), deadline); !status) {
      return status;
    }
  }
  return {};
}

Result<FirstWord> ask_first_member(TorchStore& store, int rank, core::TimePoint deadline) {
  std::array<std::byte, 16> number{};
  if (auto status = transport::fill_random(number); !status) return std::move(status).error();
  const std::string nonce = hex(number);
  if (auto status = store.put(ask_of(rank), nonce, deadline); !status) {
    return std::move(status).error();
  }
  auto text = store.get(answer_to(rank, nonce), deadline);
  if (!text) {
    (void)store.put(ask_of(rank), kTakenBack, deadline);
    return std::move(text).error().with_context(
        "rank 0 of the group, or another of its ranks, did not come to meet");
  }
  store.remove(answer_to(rank, nonce));
  return FirstWord::parse(*text);
}

}  // namespace fasthorovod::torch_binding
