#include "transport/mpi_words.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/wire.h"
#include "transport/member.h"
#include "transport/mpi_tags.h"
#include "transport/secret.h"

namespace fasthorovod::transport {
namespace {

using core::Error;
using core::ErrorCode;
using core::Result;
using core::Status;

// Letters can only be looked for.
constexpr std::chrono::milliseconds kLookAgain{1};

// What a rank says of itself. Number 0 takes an earlier ask back.
struct Ask {
  std::uint64_t number = 0;
  bool has_file = false;
  bool requires_file = false;
};

struct Answer {
  std::uint64_t number = 0;
  MpiWord word;
  std::optional<Error> error;
};

Error nonsense(int rank) {
  return {ErrorCode::kProtocol,
          fmt::format("rank {} sent by MPI what no rank of this version sends", rank), rank};
}

Letter encode(const Ask& ask) {
  core::WireWriter writer;
  writer.u64(ask.number);
  writer.u8(ask.has_file ? 1 : 0);
  writer.u8(ask.requires_file ? 1 : 0);
  return std::move(writer).take();
}

Result<Ask> decode_ask(const Letter& letter, int rank) {
  core::WireReader reader(letter);
  Ask ask;
  ask.number = reader.u64();
  ask.has_file = reader.u8() != 0;
  ask.requires_file = reader.u8() != 0;
  if (!reader.ok() || !reader.at_end()) return nonsense(rank);
  return ask;
}

Letter encode(const Answer& answer) {
  core::WireWriter writer;
  writer.u64(answer.number);
  writer.u64(answer.word.attempt);
  writer.text(answer.word.secret);
  writer.u8(answer.error ? 1 : 0);
  if (answer.error) {
    writer.u8(static_cast<std::uint8_t>(answer.error->code));
    writer.signed_varint(answer.error->culprit);
    writer.text(answer.error->message);
  }
  return std::move(writer).take();
}

Result<Answer> decode_answer(const Letter& letter) {
  core::WireReader reader(letter);
  Answer answer;
  answer.number = reader.u64();
  answer.word.attempt = reader.u64();
  answer.word.secret = reader.text();
  if (reader.u8() != 0) {
    Error error;
    const std::uint8_t code = reader.u8();
    if (code > static_cast<std::uint8_t>(ErrorCode::kInternal)) reader.fail();
    error.code = static_cast<ErrorCode>(code);
    error.culprit = static_cast<int>(reader.signed_varint());
    error.message = reader.text();
    answer.error = std::move(error);
  }
  if (!reader.ok() || !reader.at_end()) return nonsense(0);
  return answer;
}

Result<std::uint64_t> new_number() {
  std::array<std::byte, sizeof(std::uint64_t)> bytes{};
  if (auto status = fill_random(bytes); !status) return std::move(status).error();
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number | 1;
}

Result<Ask> ask_of(const core::Config& config) {
  auto number = new_number();
  if (!number) return std::move(number).error();
  return Ask{.number = *number,
             .has_file = !config.secret_file.empty(),
             .requires_file = config.require_secret};
}

/// "rank 3" or "ranks 3, 5 and 7 more"
std::string name(const std::vector<int>& ranks) {
  return describe(Missing{ranks, static_cast<int>(ranks.size())});
}

/// By rank; those that have not come are empty.
using Asks = std::vector<std::optional<Ask>>;

/// Takes in what has come.
Status look(MpiMail& mail, Asks& asks) {
  for (int rank = 1; rank < mail.size(); ++rank) {
    while (true) {
      auto letter = mail.receive(rank, kAskTag);
      if (!letter) return std::move(letter).error();
      if (!letter->has_value()) break;
      auto ask = decode_ask(**letter, rank);
      if (!ask) return std::move(ask).error();
      auto& place = asks[static_cast<std::size_t>(rank)];
      place = ask->number == 0 ? std::nullopt : std::optional(*ask);
    }
  }
  return {};
}

template <typename Holds>
std::vector<int> ranks_where(const Asks& asks, Holds holds) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < asks.size(); ++rank) {
    if (holds(asks[rank])) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

Status await_all(MpiMail& mail, Asks& asks, core::TimePoint deadline) {
  while (true) {
    if (auto status = look(mail, asks); !status) return status;
    const auto absent = ranks_where(asks, [](const auto& ask) { return !ask; });
    if (absent.empty()) return {};
    if (core::Clock::now() >= deadline) {
      return Error{
          ErrorCode::kTimedOut,
          fmt::format("{} did not come to meet over MPI before the time limit", name(absent)),
          absent.front()};
    }
    std::this_thread::sleep_for(kLookAgain);
  }
}

/// Whether the ranks are of one mind, and the secret.
Result<MpiWord> decide(const Asks& asks) {
  const auto without = ranks_where(asks, [](const auto& ask) { return !ask->has_file; });
  auto attempt = new_number();
  if (!attempt) return std::move(attempt).error();
  if (without.empty()) return MpiWord{.secret = "", .attempt = *attempt};
  const auto with = ranks_where(asks, [](const auto& ask) { return ask->has_file; });
  if (!with.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("FASTHOROVOD_SECRET_FILE is set on {} and not on {}; set it on all "
                             "ranks or on none",
                             name(with), name(without))};
  }
  const auto strict = ranks_where(asks, [](const auto& ask) { return ask->requires_file; });
  if (!strict.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("FASTHOROVOD_REQUIRE_SECRET is 1 on {}, but FASTHOROVOD_SECRET_FILE "
                             "is not set",
                             name(strict))};
  }
  auto secret = Secret::generate();
  if (!secret) return std::move(secret).error();
  return MpiWord{.secret = *std::move(secret), .attempt = *attempt};
}

Result<MpiWord> answer_all(MpiMail& mail, const Ask& own, core::TimePoint deadline) {
  Asks asks(static_cast<std::size_t>(mail.size()));
  asks[0] = own;
  const Status all_here = await_all(mail, asks, deadline);
  Result<MpiWord> word = all_here ? decide(asks) : all_here.error();
  for (int rank = 1; rank < mail.size(); ++rank) {
    const auto& ask = asks[static_cast<std::size_t>(rank)];
    if (!ask) continue;
    Answer answer{.number = ask->number, .word = {}, .error = {}};
    if (word) {
      answer.word = *word;
    } else {
      answer.error = word.error();
    }
    if (auto sent = mail.send(rank, kAnswerTag, encode(answer)); !sent) {
      return std::move(sent).error();
    }
  }
  return word;
}

Result<MpiWord> await_answer(MpiMail& mail, std::uint64_t number, core::TimePoint deadline) {
  while (true) {
    auto letter = mail.receive(0, kAnswerTag);
    if (!letter) return std::move(letter).error();
    if (letter->has_value()) {
      auto answer = decode_answer(**letter);
      if (!answer) return std::move(answer).error();
      if (answer->number != number) continue;  // to an ask that was given up
      if (answer->error) return *std::move(answer->error);
      return std::move(answer->word);
    }
    if (core::Clock::now() >= deadline) {
      return Error{ErrorCode::kTimedOut,
                   "rank 0, or another rank, did not come to meet over MPI before the time limit",
                   0};
    }
    std::this_thread::sleep_for(kLookAgain);
  }
}

// Rank 0, which waits for the same deadline, may be about to say who is missing.
constexpr std::chrono::milliseconds kLastWord{500};

}  // namespace

Result<MpiWord> agree_over_mpi(MpiMail& mail, const core::Config& config,
                               core::TimePoint deadline) {
  auto ask = ask_of(config);
  if (!ask) return std::move(ask).error();
  if (mail.rank() == 0) return answer_all(mail, *ask, deadline);
  if (auto sent = mail.send(0, kAskTag, encode(*ask)); !sent) return std::move(sent).error();
  auto word = await_answer(mail, ask->number, deadline + kLastWord);
  if (!word && word.error().code == ErrorCode::kTimedOut) {
    (void)mail.send(0, kAskTag, encode(Ask{}));
  }
  return word;
}

}  // namespace fasthorovod::transport
