#include "tools/fasthorovod-bench/exchange.h"

#include <algorithm>
#include <span>
#include <utility>

namespace fasthorovod::tools {

// A sum to which each rank adds zeros but in its own place: an all-reduce needs no connections that
// the measured one does not have.
core::Result<std::vector<double>> exchange_numbers(ops::Engine& engine,
                                                   const std::vector<double>& own) {
  const core::World& world = engine.world();
  std::vector<double> all(own.size() * static_cast<std::size_t>(world.size));
  std::copy(own.begin(), own.end(),
            all.begin() + static_cast<std::ptrdiff_t>(own.size()) * world.rank);
  ops::OrderedOperation operation;
  operation.type = core::DataType::kFloat64;
  operation.input = std::as_bytes(std::span(all));
  operation.output = std::as_writable_bytes(std::span(all));
  operation.title = "exchange between iterations";
  if (core::Status status = engine.run(std::move(operation)); !status) {
    return std::move(status).error();
  }
  return all;
}

}  // namespace fasthorovod::tools
