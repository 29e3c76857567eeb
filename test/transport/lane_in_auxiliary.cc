#include "test/transport/aux_fixture.h"
#include "test/transport/lane_fixture.h"

namespace fasthorovod::transport {
namespace {

// Some tests move chunks of 64 MiB, and all memory of a FakeChunkWork is private.
constexpr std::size_t kArenaBytes = std::size_t{160} << 20;
constexpr std::size_t kStagingBytes = std::size_t{144} << 20;

class AuxiliaryPlace final : public LanePlace {
 public:
  AuxiliaryPlace(const LaneOptions& options, ChunkWork& work) : rank_(kArenaBytes) {
    rank_.home.staging_bytes = kStagingBytes;
    auto lane = AuxLane::attach(rank_.home, rank_.lease(), options, work,
                                [](const std::string& how) { ADD_FAILURE() << how; });
    if (lane) lane_ = std::move(*lane);
  }
  ~AuxiliaryPlace() override { stop(); }

  void add_flow(int peer, FileDescriptor socket) override {
    lane_->add_flow(peer, std::move(socket));
  }
  void wake() override { lane_->wake(); }
  void begin_stop() override { lane_->begin_stop(); }
  void stop() override { lane_->stop(); }
  [[nodiscard]] LaneStatistics statistics() const override { return lane_->statistics(); }

 private:
  AuxRank rank_;
  std::unique_ptr<LanePlace> lane_;
};

}  // namespace

std::unique_ptr<LanePlace> make_place(const LaneOptions& options, ChunkWork& work) {
  return std::make_unique<AuxiliaryPlace>(options, work);
}

}  // namespace fasthorovod::transport
