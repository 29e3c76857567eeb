// What the first member of a group tells the others through the store.
#pragma once

#include <string>

#include "core/request.h"
#include "core/result.h"

namespace fasthorovod::torch_binding {

inline constexpr const char* kNoSecret = "-";

struct FirstWord {
  bool share = false;              // the engine that runs already; else all start one
  std::string job;                 // of that engine
  std::string secret = kNoSecret;  // of the engine to start, where there is no file
  core::GroupId id = 0;            // of the group

  [[nodiscard]] std::string text() const;

  /// kProtocol when that is no such text.
  static core::Result<FirstWord> parse(const std::string& text);
};

}  // namespace fasthorovod::torch_binding
