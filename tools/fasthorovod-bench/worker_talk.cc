#include "tools/fasthorovod-bench/worker_talk.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "tools/fasthorovod-bench/exchange.h"
#include "tools/fasthorovod-bench/worker_messages.h"

namespace fasthorovod::tools {
namespace {

constexpr int kFailed = -1;  // what a rank with an error says in place of a number

}  // namespace

core::Result<std::string> hear_answer(LineProcess& process, std::string_view expected) {
  core::Result<std::string> line = process.hear();
  if (!line) return std::move(line).error();
  return worker_answer(*line, expected);
}

core::Result<std::vector<double>> agree(ops::Engine& engine, const core::Result<int>& own,
                                        std::string_view contestant) {
  const int number = own ? *own : kFailed;
  core::Result<std::vector<double>> all = exchange_numbers(engine, {static_cast<double>(number)});
  if (!own) return own.error();
  if (!all) return all;
  for (std::size_t rank = 0; rank < all->size(); ++rank) {
    if ((*all)[rank] != kFailed) continue;
    return core::Error{core::ErrorCode::kUnavailable,
                       fmt::format("{} has no {}; it says why",
                                   engine.world().describe(static_cast<int>(rank)), contestant),
                       static_cast<int>(rank)};
  }
  return all;
}

}  // namespace fasthorovod::tools
