#include "transport/meeting.h"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <memory>
#include <optional>
#include <utility>

namespace fasthorovod::transport {

namespace asio = boost::asio;

namespace {

// Shared by the waiting caller and the coroutine, which may still be suspended when the caller gave
// up.
struct Attempts {
  std::optional<core::Result<Dialled>> outcome;
  bool done = false;
  core::Error last{core::ErrorCode::kTimedOut, "nothing was tried"};

  void finish(core::Result<Dialled> result) {
    outcome.emplace(std::move(result));
    done = true;
  }
};

asio::awaitable<void> keep_dialling(asio::io_context& context, const Secret& secret,
                                    MeetingPlan plan, std::shared_ptr<Attempts> attempts) {
  BackOff back_off;
  for (;;) {
    auto endpoints = plan.endpoints();
    if (!endpoints && endpoints.error().code == core::ErrorCode::kInvalidArgument) {
      co_return attempts->finish(std::move(endpoints).error());
    }
    if (!endpoints) {
      attempts->last = std::move(endpoints).error();
    } else {
      DialResult result = co_await dial(context, secret, plan.claim, *endpoints);
      if (auto* dialled = std::get_if<Dialled>(&result))
        co_return attempts->finish(std::move(*dialled));
      auto& failure = std::get<DialFailure>(result);
      const Outlook final_word = plan.decoys ? Outlook::kSettled : Outlook::kHopeless;
      if (failure.outlook >= final_word) co_return attempts->finish(std::move(failure.error));
      attempts->last = std::move(failure.error);
    }
    co_await pause(context, back_off.next());
  }
}

}  // namespace

bool run_until(asio::io_context& context, const bool& done, core::TimePoint deadline) {
  context.restart();
  while (!done && core::Clock::now() < deadline) {
    if (context.run_one_until(deadline) == 0 && context.stopped()) break;
  }
  return done;
}

core::Result<Dialled> meet(asio::io_context& context, const Secret& secret, const MeetingPlan& plan,
                           core::TimePoint deadline) {
  const auto attempts = std::make_shared<Attempts>();
  asio::co_spawn(context, keep_dialling(context, secret, plan, attempts), asio::detached);
  if (!run_until(context, attempts->done, deadline)) {
    return core::Error{
        core::ErrorCode::kTimedOut,
        fmt::format("{} at {} did not let this rank in before the time limit; the last attempt: {}",
                    plan.what, plan.where, attempts->last.message)};
  }
  if (!*attempts->outcome) {
    return std::move(attempts->outcome->error())
        .with_context(fmt::format("meeting {} at {}", plan.what, plan.where));
  }
  return std::move(*attempts->outcome);
}

}  // namespace fasthorovod::transport
