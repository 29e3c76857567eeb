#include "transport/aux_worker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/build_id.h"
#include "transport/aux_socket.h"
#include "transport/lane.h"
#include "transport/own_processors.h"
#include "transport/remote_seat.h"

namespace fasthorovod::transport {
namespace {

using core::Error;
using core::ErrorCode;

// The lane sleeps until something happens; a step needs some limit.
constexpr std::chrono::hours kLong{1};

void complain(const Error& error) {
  (void)std::fputs(fmt::format("fasthorovod-aux: {}\n", error.message).c_str(), stderr);
}

// From attach to detach.
class Session final {
 public:
  static core::Result<std::unique_ptr<Session>> attach(AuxReceived received,
                                                       const AddFunction& add);
  ~Session() {
    if (!thread_.joinable()) return;
    stopping_.store(true);
    lane_->wake();
    thread_.join();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void add_flow(int peer, FileDescriptor socket, std::uint32_t flow) {
    lane_->add_flow(peer, std::move(socket), flow);
  }

 private:
  Session(Arena arena, std::size_t mailbox, FileDescriptor rank_bell, const AddFunction& add)
      : arena_(std::move(arena)),
        mailbox_(*reinterpret_cast<AuxMailbox*>(arena_.bytes().data() + mailbox)),
        work_(arena_, mailbox_, std::move(rank_bell), add) {}

  std::unique_ptr<FlowSeat> seat(int peer, std::uint32_t flow);
  void run();

  const Arena arena_;
  AuxMailbox& mailbox_;
  RemoteWork work_;
  std::unique_ptr<Lane> lane_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

core::Result<std::unique_ptr<Session>> Session::attach(AuxReceived received,
                                                       const AddFunction& add) {
  const AuxMessage& message = received.message;
  auto& descriptors = received.descriptors;
  if (descriptors.size() != 3) return Error{ErrorCode::kProtocol, "descriptors are missing"};
  auto arena = Arena::open(std::move(descriptors[0]));
  if (!arena) return std::move(arena).error();
  const std::size_t size = arena->bytes().size();
  if (message.mailbox % Arena::kPage != 0 || message.mailbox > size ||
      sizeof(AuxMailbox) > size - message.mailbox) {
    return Error{ErrorCode::kProtocol, "the mailbox lies outside of the arena"};
  }
  std::unique_ptr<Session> session(
      new Session(std::move(*arena), message.mailbox, std::move(descriptors[1]), add));
  const LaneOptions options{.notsent_lowat = message.notsent_lowat,
                            .close_limit = std::chrono::milliseconds(message.close_limit_ms),
                            .shared_sockets = true,
                            .seats = [raw = session.get()](int peer, std::uint32_t flow) {
                              return raw->seat(peer, flow);
                            }};
  auto lane = Lane::create(options, session->work_, std::move(descriptors[2]));
  if (!lane) return std::move(lane).error();
  session->lane_ = std::move(*lane);
  session->work_.count(*session->lane_);
  session->thread_ = std::thread([raw = session.get()] { raw->run(); });
  return session;
}

std::unique_ptr<FlowSeat> Session::seat(int peer, std::uint32_t flow) {
  SharedFlow* const shared = flow < kSharedFlows ? &mailbox_.flows[flow] : nullptr;
  return std::make_unique<RemoteSeat>(peer, shared == nullptr ? kNoFlow : flow, shared, work_);
}

void Session::run() {
  while (!stopping_.load()) {
    const auto heard = work_.hear();
    if (!heard) {
      complain(heard.error());
      ::_exit(1);
    }
    if (*heard) lane_->wake();
    work_.publish();
    if (work_.arm()) (void)lane_->step(kLong);
  }
  lane_->stop();
  lane_->run();  // closes the flows in good order
  work_.flush();
  work_.publish();
}

// Threads of lanes inherit it.
int bind_as(const AuxMessage& message, const std::vector<int>& home) {
  std::vector<int> processors;
  for (int id = 0; id < core::kMostProcessors; ++id) {
    const std::uint64_t word = message.processors[static_cast<std::size_t>(id) / 64];
    if ((word >> (id % 64) & 1) != 0) processors.push_back(id);
  }
  return bind_thread(processors.empty() ? home : processors);
}

// One message. An error ends the process.
core::Status obey(AuxReceived received, std::unique_ptr<Session>& session, const AuxSocket& rank,
                  const std::vector<int>& home, const AddFunction& add) {
  const auto kind = received.message.kind;
  if (kind == AuxMessage::Kind::kAttach && !session) {
    auto attached = Session::attach(std::move(received), add);
    if (!attached) return std::move(attached).error();
    session = std::move(*attached);
    return {};
  }
  if (kind == AuxMessage::Kind::kFlow && session && received.descriptors.size() == 1) {
    session->add_flow(received.message.number, std::move(received.descriptors[0]),
                      received.message.flow);
    return {};
  }
  if (kind == AuxMessage::Kind::kBind && !session) {
    return rank.send({.kind = AuxMessage::Kind::kBound, .number = bind_as(received.message, home)});
  }
  if (kind == AuxMessage::Kind::kDetach) {
    session.reset();
    return rank.send({.kind = AuxMessage::Kind::kDetached});
  }
  return Error{ErrorCode::kProtocol, "the rank sent a message that makes no sense"};
}

}  // namespace

int run_auxiliary(FileDescriptor socket, const AddFunction& add) {
  const AuxSocket rank(std::move(socket));
  AuxMessage hello{.kind = AuxMessage::Kind::kHello};
  std::ranges::copy(core::build_id().substr(0, AuxMessage::kBuild), hello.build.begin());
  if (!rank.send(hello)) return 1;
  const std::vector<int> home = processors_of_thread();
  std::unique_ptr<Session> session;
  while (true) {
    auto received = rank.receive(std::nullopt);
    if (!received) {
      complain(received.error());
      return 1;
    }
    // Without the rank nobody needs the flows to end in good order.
    if (!*received) ::_exit(0);
    if (core::Status status = obey(std::move(**received), session, rank, home, add); !status) {
      complain(status.error());
      ::_exit(1);
    }
  }
}

}  // namespace fasthorovod::transport
