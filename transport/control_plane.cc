#include "transport/control_plane.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <charconv>
#include <optional>
#include <thread>
#include <utility>

#include "transport/allreduce_plans.h"
#include "transport/congestion.h"
#include "transport/control_links.h"
#include "transport/cores.h"
#include "transport/cost_cache.h"
#include "transport/descriptor_limit.h"
#include "transport/flow_broker.h"
#include "transport/lane_plans.h"
#include "transport/listener.h"
#include "transport/listening_places.h"
#include "transport/mate_meeting.h"
#include "transport/meeting.h"
#include "transport/member.h"
#include "transport/mpi_start.h"
#include "transport/refusals.h"
#include "transport/rendezvous.h"
#include "transport/store_client.h"
#include "transport/topology.h"

namespace fasthorovod::transport {
namespace {

namespace asio = boost::asio;

constexpr auto kResolveAgain = std::chrono::milliseconds(250);

core::Result<core::JobId> job_of(const core::Config& config, const Secret& secret) {
  if (config.job.empty()) return secret.derive_job_id();
  core::JobId job{};
  const char* digits = config.job.data();
  const bool right_length = config.job.size() == 2 * job.size();
  for (std::size_t i = 0; right_length && i < job.size(); ++i) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(digits + 2 * i, digits + 2 * i + 2, value, 16);
    if (error != std::errc{} || end != digits + 2 * i + 2) break;
    job[i] = static_cast<std::byte>(value);
    if (i + 1 == job.size()) return job;
  }
  return core::Error{core::ErrorCode::kInvalidArgument,
                     "FASTHOROVOD_JOB is not 32 hexadecimal digits"};
}

class AsioControlPlane final : public ControlPlane {
 public:
  AsioControlPlane(const core::Config& config, std::uint32_t epoch, core::Log& log, Secret secret,
                   const core::JobId& job)
      : config_(config),
        epoch_(epoch),
        secret_(std::move(secret)),
        job_(job),
        refusals_(log),
        links_(context_),
        flows_(context_, secret_,
               {.job = job,
                .epoch = epoch,
                .rank = config.rank,
                .size = config.size,
                .rate = config.flow_rate,
                .congestion = config.tcp_congestion,
                .limit = config.start_timeout}),
        mates_(context_, links_, secret_, refusals_) {}

  ~AsioControlPlane() override { close(); }

  /// `store`: where to meet, or null for what the configuration says.
  core::Status start(core::TimePoint deadline, KeyValueStore* store, const std::string& where);

  [[nodiscard]] const core::World& world() const override { return world_; }
  [[nodiscard]] const core::LanePlan& lane_plan() const override { return lanes_.own(); }
  [[nodiscard]] const core::LaneReasons& lane_reasons() const override { return lanes_.reasons(); }
  [[nodiscard]] int flows_with(int peer) const override { return lanes_.flows_with(peer); }
  [[nodiscard]] int usual_flows() const override { return lanes_.usual_flows(); }
  [[nodiscard]] int smallest_arena_mb() const override { return lanes_.smallest_arena_mb(); }
  [[nodiscard]] const core::AllreducePlan& allreduce_plan() const override { return allreduce_; }

  [[nodiscard]] const std::string& interface() const override { return interface_; }
  [[nodiscard]] int ranks_on_machine() const override { return lanes_.ranks_on_machine(); }

  core::Result<std::vector<Mate>> meet_mates(const Arena& own) override {
    return mates_.meet(own, config_.start_timeout);
  }

  void give_up(const core::Error& error) override { mates_.give_up(error); }

  void run(ControlHandlers handlers) override {
    context_.restart();
    if (stopped_.load()) return;
    handlers_ = std::move(handlers);
    flows_.attach({handlers_.on_flow_wanted, handlers_.on_flow, handlers_.on_flow_failed});
    links_.attach({handlers_.on_message,
                   [this](int rank, core::Error error) { lose(rank, std::move(error)); }});
    const auto keep_running = asio::make_work_guard(context_);
    context_.run();
  }

  void stop() override {
    stopped_.store(true);
    context_.stop();
  }

  void post(std::function<void()> function) override { asio::post(context_, std::move(function)); }

  void call_after(std::chrono::nanoseconds delay, std::function<void()> function) override {
    const auto timer = std::make_shared<asio::steady_timer>(context_, delay);
    timer->async_wait(
        [timer, function = std::move(function)](const boost::system::error_code& error) {
          if (!error) function();
        });
  }

  core::Status send(int rank, std::vector<std::byte> message) override {
    const bool possible =
        rank != config_.rank && (config_.rank == 0 ? rank > 0 && rank < config_.size : rank == 0);
    if (!possible) {
      return core::Error{
          core::ErrorCode::kInternal,
          fmt::format("rank {} has no control connection to rank {}", config_.rank, rank)};
    }
    return links_.send(rank, message);
  }

  void expect_close(int rank) override { links_.expect_close(rank); }

  void open_flows(int peer, int count) override { flows_.open(peer, count); }

  void flush(std::chrono::milliseconds limit) override {
    links_.drain(core::Clock::now() + limit);
    close();
  }

  [[nodiscard]] Refusals refused() const override { return refusals_.counts(); }

 private:
  core::Status introduce_self();
  core::Result<Roster> gather(core::TimePoint deadline);
  struct OpenStore;
  core::Result<OpenStore> open_store(core::TimePoint deadline);
  core::Status listen_and_store(core::TimePoint deadline);
  core::Status listen_at_meeting_point(core::TimePoint deadline);
  core::Result<Roster> join_rank_0(core::TimePoint deadline);
  core::Result<Dialled> dial_rank_0(core::TimePoint deadline);
  core::Status listen(const core::Result<ListeningPlaces>& places);
  core::Status learn_roster(Roster roster);
  void close();
  void lose(int rank, core::Error error);

  [[nodiscard]] bool uses_store() const { return given_store_ || !config_.store.empty(); }
  [[nodiscard]] std::string store_key() const {
    return fmt::format("rank 0 of epoch {:010}", epoch_);
  }
  [[nodiscard]] Verdict admit(const Claim& claim);

  const core::Config config_;
  const std::uint32_t epoch_;
  const Secret secret_;
  const core::JobId job_;
  KeyValueStore* given_store_ = nullptr;  // during the start only
  std::string store_place_;               // host:port of the store
  core::World world_;
  LanePlans lanes_;
  core::AllreducePlan allreduce_;
  Member self_;
  std::string interface_;
  ControlHandlers handlers_;
  std::atomic<bool> stopped_ = false;

  // Destroyed late: its pending work may hold parts of what follows, but touches none of it when it
  // goes.
  asio::io_context context_;
  RefusalLog refusals_;
  ControlLinks links_;
  FlowBroker flows_;
  MateMeeting mates_;
  std::optional<Gathering> gathering_;  // rank 0 only
  std::optional<Listener> listener_;
};

// A store that somebody reached, and from where.
struct AsioControlPlane::OpenStore {
  std::unique_ptr<StoreClient> own;  // the launcher's; a given one belongs to the caller
  KeyValueStore* store;
  IpAddress reached;
};

core::Status AsioControlPlane::start(core::TimePoint deadline, KeyValueStore* store,
                                     const std::string& where) {
  given_store_ = store;
  store_place_ = where;
  if (!config_.tcp_congestion.empty()) {
    if (auto status = check_congestion(config_.tcp_congestion); !status) return status;
  }
  if (auto status = introduce_self(); !status) return status;
  if (config_.size == 1) {
    world_ = core::make_world(job_, epoch_, 0, {self_.placement});
    lanes_ = LanePlans(std::span(&self_, 1), 0);
    allreduce_ = plan_for(std::span(&self_, 1), nullptr);
    return {};
  }
  auto roster = config_.rank == 0 ? gather(deadline) : join_rank_0(deadline);
  if (!roster) return std::move(roster).error();
  return learn_roster(std::move(*roster));
}

core::Status AsioControlPlane::learn_roster(Roster roster) {
  std::vector<Member>& members = roster.members;
  if (members.size() != static_cast<std::size_t>(config_.size)) {
    return core::Error{core::ErrorCode::kProtocol, "rank 0 knows a world of another size", 0};
  }
  std::vector<core::Placement> placements;
  placements.reserve(members.size());
  for (const Member& member : members) placements.push_back(member.placement);
  world_ = core::make_world(job_, epoch_, config_.rank, placements);
  lanes_ = LanePlans(members, config_.rank);
  allreduce_ = std::move(roster.allreduce);
  if (auto status = check_data_planes(members); !status) return status;
  if (auto status = check_allreduces(members); !status) return status;
  mates_.learn(world_, members);
  flows_.set_members(std::move(members), link_local_scopes());
  return {};
}

core::Status AsioControlPlane::introduce_self() {
  auto host = real_host_identity();
  if (!host) return std::move(host).error();
  self_.real_host = *host;
  self_.placement.host_identity =
      config_.host_identity.empty() ? self_.real_host : config_.host_identity;
  self_.placement.host_name = local_host_name();
  self_.wish =
      core::lane_wish(config_, usable_cores(), load_costs().value_or(core::typical_costs()));
  self_.allreduce = {.forced = config_.allreduce, .deterministic = config_.deterministic};
  self_.arena_mb = config_.arena_mb;
  if (config_.size == 1) return {};
  auto door = mates_.open_door();
  if (!door) return std::move(door).error();
  self_.door = std::move(*door);
  return {};
}

core::Status AsioControlPlane::listen(const core::Result<ListeningPlaces>& places) {
  if (!places) return places.error();
  const AnsweringHandshake::Self self{job_, epoch_, config_.rank};
  listener_.emplace(context_, secret_, self, refusals_,
                    ListenerHandlers{.admit = [this](const Claim& claim) { return admit(claim); },
                                     .retract =
                                         [this](const Claim& claim) {
                                           if (claim.purpose == Purpose::kFlow)
                                             return flows_.retract(claim);
                                           gathering_->retract(claim);
                                         },
                                     .welcome =
                                         [this](Proven proven) {
                                           if (proven.claim.purpose == Purpose::kFlow) {
                                             flows_.welcome(std::move(proven));
                                           } else {
                                             gathering_->welcome(std::move(proven));
                                           }
                                         }});
  auto bound = listen_at_places(*listener_, *places);
  if (!bound) return std::move(bound).error();
  self_.endpoints = std::move(*bound);
  if (self_.endpoints.empty()) return {};
  interface_ = interface_of(self_.endpoints.front().address);
  self_.wish.link_mbit = link_mbit(interface_);
  return {};
}

Verdict AsioControlPlane::admit(const Claim& claim) {
  switch (claim.purpose) {
    case Purpose::kFlow:
      return flows_.admit(claim);
    case Purpose::kControl:
      return gathering_ ? gathering_->admit(claim) : Verdict::kTaken;
    case Purpose::kStore:
      break;
  }
  return Verdict::kGarbage;
}

core::Result<Roster> AsioControlPlane::gather(core::TimePoint deadline) {
  auto status = uses_store() ? listen_and_store(deadline) : listen_at_meeting_point(deadline);
  if (!status) return std::move(status).error();
  return gathering_->wait(deadline, config_.processor);
}

core::Result<AsioControlPlane::OpenStore> AsioControlPlane::open_store(core::TimePoint deadline) {
  if (given_store_ == nullptr) {
    auto client = StoreClient::connect(config_.store, secret_, job_, config_.rank, deadline);
    if (!client) return std::move(client).error();
    store_place_ = config_.store;
    OpenStore store{std::move(*client), nullptr, {}};
    store.store = store.own.get();
    store.reached = store.own->endpoint().address;
    return store;
  }
  if (!store_place_.empty()) {
    auto endpoints = endpoints_of(store_place_);
    if (!endpoints) return std::move(endpoints).error().with_context("the store's address");
    if (!endpoints->empty()) return OpenStore{nullptr, given_store_, endpoints->front().address};
  }
  // Nothing is known about the way to the others (a file may be the store): any way may do, also
  // the one inside this host.
  store_place_ = "unknown:1";
  return OpenStore{nullptr, given_store_, *parse_ip("127.0.0.1")};
}

core::Status AsioControlPlane::listen_and_store(core::TimePoint deadline) {
  auto store = open_store(deadline);
  if (!store) return std::move(store).error();
  const auto places = places_near(store_place_, store->reached, config_.network_interface);
  if (auto status = listen(places); !status) return status;
  gathering_.emplace(context_, links_, config_.size, self_);
  return store->store->put(store_key(), join_endpoints(self_.endpoints), deadline);
}

core::Status AsioControlPlane::listen_at_meeting_point(core::TimePoint deadline) {
  auto places = places_of_meeting_point(config_.rendezvous, config_.network_interface);
  // A resolver may fail for a moment; nothing else does.
  while (!places && places.error().code == core::ErrorCode::kUnavailable &&
         core::Clock::now() < deadline) {
    std::this_thread::sleep_for(kResolveAgain);
    places = places_of_meeting_point(config_.rendezvous, config_.network_interface);
  }
  if (auto status = listen(places); !status) return status;
  gathering_.emplace(context_, links_, config_.size, self_);
  return {};
}

core::Result<Roster> AsioControlPlane::join_rank_0(core::TimePoint deadline) {
  auto rank_0 = dial_rank_0(deadline);
  if (!rank_0) return std::move(rank_0).error();
  const std::string& meeting_point = uses_store() ? store_place_ : config_.rendezvous;
  if (auto status =
          listen(places_near(meeting_point, rank_0->endpoint.address, config_.network_interface));
      !status) {
    return std::move(status).error();
  }
  return join(context_, links_, std::move(*rank_0), {config_.size, self_}, deadline);
}

core::Result<Dialled> AsioControlPlane::dial_rank_0(core::TimePoint deadline) {
  MeetingPlan plan{.claim = {job_, epoch_, Purpose::kControl, config_.rank, 0, 0},
                   .what = "rank 0",
                   .where = config_.rendezvous,
                   .endpoints = [this] { return endpoints_of(config_.rendezvous); },
                   .decoys = false};
  if (uses_store()) {
    auto store = open_store(deadline);
    if (!store) return std::move(store).error();
    auto text = store->store->get(store_key(), deadline);
    if (!text && text.error().code != core::ErrorCode::kTimedOut) {
      return std::move(text).error().with_context("asking the store where rank 0 listens");
    }
    if (!text) {
      core::Error error = std::move(text).error();
      error.culprit = 0;
      return std::move(error).with_context("rank 0 never came, or never said where it listens");
    }
    auto endpoints = split_endpoints(*text, link_local_scopes());
    if (!endpoints) return std::move(endpoints).error();
    plan.where = *text;
    plan.endpoints = [listed = std::move(*endpoints)] { return listed; };
    plan.decoys = true;
  }
  auto met = meet(context_, secret_, plan, deadline);
  if (!met) met.error().culprit = 0;
  return met;
}

void AsioControlPlane::close() {
  if (listener_) listener_->close();
  flows_.close();
  links_.close_all();
}

void AsioControlPlane::lose(int rank, core::Error error) {
  error.culprit = rank;
  handlers_.on_lost(rank, std::move(error).with_context(
                              fmt::format("the control connection to {}", world_.describe(rank))));
}

}  // namespace

core::Result<std::unique_ptr<ControlPlane>> ControlPlane::connect(const core::Config& config,
                                                                  std::uint32_t epoch,
                                                                  core::Log& log) {
  if (!config.mpi_launcher.empty() && config.size > 1) return connect_over_mpi(config, epoch, log);
  const core::TimePoint deadline = core::Clock::now() + config.start_timeout;
  if (auto status = check_descriptors(config); !status) {
    return std::move(status).error();
  }
  // A world of one proves nothing to nobody; it has a job all the same.
  auto secret = config.secret_file.empty() && config.size == 1
                    ? core::Result<Secret>(Secret::from_bytes({}))
                    : Secret::from_file(config.secret_file);
  if (!secret) return std::move(secret).error();
  auto job = job_of(config, *secret);
  if (!job) return std::move(job).error();
  auto plane = std::make_unique<AsioControlPlane>(config, epoch, log, std::move(*secret), *job);
  if (auto status = plane->start(deadline, nullptr, ""); !status) return std::move(status).error();
  return std::unique_ptr<ControlPlane>(std::move(plane));
}

core::Result<std::unique_ptr<ControlPlane>> ControlPlane::connect(const core::Config& config,
                                                                  std::uint32_t epoch,
                                                                  core::Log& log, Meeting meeting) {
  const core::TimePoint deadline = core::Clock::now() + config.start_timeout;
  if (auto status = check_descriptors(config); !status) {
    return std::move(status).error();
  }
  auto job = job_of(config, meeting.secret);
  if (!job) return std::move(job).error();
  auto plane =
      std::make_unique<AsioControlPlane>(config, epoch, log, std::move(meeting.secret), *job);
  if (auto status = plane->start(deadline, &meeting.store, meeting.where); !status)
    return std::move(status).error();
  return std::unique_ptr<ControlPlane>(std::move(plane));
}

}  // namespace fasthorovod::transport
