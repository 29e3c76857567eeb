// Where ranks leave word for one another before they are connected: the launcher's store, or one
// that the program has already.
#pragma once

#include <string>

#include "core/clock.h"
#include "core/result.h"

namespace fasthorovod::transport {

class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;

  virtual core::Status put(const std::string& key, const std::string& value,
                           core::TimePoint deadline) = 0;

  /// Waits until somebody has put the key: kTimedOut when nobody did.
  virtual core::Result<std::string> get(const std::string& key, core::TimePoint deadline) = 0;
};

}  // namespace fasthorovod::transport
