// Opens data flows between this rank and its peers: the lower rank dials, the higher one answers.
//
// A flow that arrives before this rank asked for its peer is told of, and waits here until it asks;
// each (peer, index) exists at most once. Thread: owner (the io_context's).
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/config.h"
#include "core/result.h"
#include "transport/dialler.h"
#include "transport/listener.h"
#include "transport/member.h"

namespace fasthorovod::transport {

struct FlowOptions {
  core::JobId job{};
  std::uint32_t epoch = 0;
  int rank = 0;
  int size = 1;
  core::BytesPerSecond rate = 0;            // of each flow to another host; 0: not paced
  std::string congestion = {};              // control of each flow, by name; "": the system's
  std::chrono::milliseconds limit{60'000};  // for all flows to a peer to be there
};

struct FlowHandlers {
  // It dials, and this rank has not asked for it.
  std::function<void(int peer)> on_wanted = [](int) {};
  std::function<void(int peer, std::uint32_t index, FileDescriptor socket)> on_flow;
  std::function<void(int peer, core::Error error)> on_failed;
};

class FlowBroker final {
 public:
  FlowBroker(boost::asio::io_context& context, const Secret& secret, const FlowOptions& options);

  /// Who is who; known once the rendezvous is over, before attach().
  void set_members(std::vector<Member> members, std::vector<std::uint32_t> scopes);
  void attach(FlowHandlers handlers);
  /// No flow is dialled or handed on any more.
  void close();

  void open(int peer, int count);

  // For the listener, about flow connections.
  [[nodiscard]] Verdict admit(const Claim& claim);
  void retract(const Claim& claim);
  void welcome(Proven proven);

 private:
  struct Peer {
    std::optional<int> wanted;  // flows, once this rank asked
    int delivered = 0;
    bool failed = false;
    std::set<std::uint32_t> proving;                // indices that are about to arrive
    std::set<std::uint32_t> taken;                  // indices that arrived
    std::map<std::uint32_t, FileDescriptor> early;  // arrived before this rank asked
    std::string last_error;
  };
  boost::asio::awaitable<void> keep_dialling(int peer, std::uint32_t flow,
                                             core::TimePoint deadline);
  boost::asio::awaitable<void> watch(int peer);
  void deliver(int peer, std::uint32_t flow, FileDescriptor socket);
  [[nodiscard]] core::Status prepare(int peer, int socket) const;
  void fail(int peer);
  [[nodiscard]] bool sits_elsewhere(int peer) const;

  boost::asio::io_context& context_;
  const Secret& secret_;
  const FlowOptions options_;
  std::vector<Member> members_;
  std::vector<std::uint32_t> scopes_;
  FlowHandlers handlers_;
  std::map<int, Peer> peers_;
  bool closed_ = false;
};

}  // namespace fasthorovod::transport
