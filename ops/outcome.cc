#include "ops/outcome.h"

#include <utility>

namespace fasthorovod::ops {

core::Status outcome_of(std::string_view title, core::Status status) {
  if (status || status.error().message.find(title) != std::string::npos) return status;
  return std::move(status).error().with_context(title);
}

}  // namespace fasthorovod::ops
