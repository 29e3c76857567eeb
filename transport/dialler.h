// The dialling side: tries the endpoints of one peer in order, with the handshake on each, until
// one is the right process. Inside transport only: it shows Asio.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <variant>
#include <vector>

#include "core/result.h"
#include "transport/endpoint.h"
#include "transport/file_descriptor.h"
#include "transport/handshake.h"

namespace fasthorovod::transport {

/// For connecting to one endpoint and for the handshake with it, together.
inline constexpr std::chrono::milliseconds kDialLimit{2'000};

struct Dialled {
  FileDescriptor socket;
  SessionKeys keys;
  Endpoint endpoint;
};

/// Whether another attempt can end otherwise.
enum class Outlook : std::uint8_t {
  kOpen,      // nobody answered, or somebody who may say something else later
  kHopeless,  // whoever answered at one of the endpoints will say the same again: another secret,
              // job or version, another rank; it may be a stranger at an address that leads
              // somewhere else from here
  kSettled,   // the very process that was dialled refuses for good
};

struct DialFailure {
  core::Error error;  // names every endpoint that was tried and what happened there
  Outlook outlook = Outlook::kOpen;
};

using DialResult = std::variant<Dialled, DialFailure>;

/// `secret` lives as long as the context. Each endpoint gets kDialLimit.
boost::asio::awaitable<DialResult> dial(boost::asio::io_context& context, const Secret& secret,
                                        Claim claim, std::vector<Endpoint> endpoints);

/// Waits between attempts: 20 ms, growing to 250 ms.
class BackOff final {
 public:
  std::chrono::milliseconds next();

 private:
  std::chrono::milliseconds wait_{20};
};

/// Lets `time` pass.
boost::asio::awaitable<void> pause(boost::asio::io_context& context,
                                   std::chrono::milliseconds time);

}  // namespace fasthorovod::transport
