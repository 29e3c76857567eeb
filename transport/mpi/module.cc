// The plug-in fasthorovod-mpi: MPI for those who opened it (mpi_module.h).
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <list>
#include <string>
#include <string_view>
#include <utility>

#include "core/build_id.h"
#include "transport/mpi_module.h"
#include "transport/mpi_tags.h"

namespace fasthorovod::transport {
namespace {

using core::Error;
using core::ErrorCode;

std::string words_of(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return {text.data(), static_cast<std::size_t>(length)};
}

core::Status check(int code, std::string_view tried) {
  if (code == MPI_SUCCESS) return {};
  return Error{ErrorCode::kSystem, fmt::format("{}: {}", tried, words_of(code))};
}

bool flag_of(int (*ask)(int*)) {
  int flag = 0;
  ask(&flag);
  return flag != 0;
}

class RealTransfer final : public MpiTransfer {
 public:
  core::Result<bool> done() override {
    int done = 0;
    if (auto tested = check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "moving a block by MPI");
        !tested) {
      return std::move(tested).error();
    }
    return done != 0;
  }

  MPI_Request request = MPI_REQUEST_NULL;
};

using Transfer = core::Result<std::unique_ptr<MpiTransfer>>;

class RealArrival final : public MpiArrival {
 public:
  RealArrival(MPI_Message message, int peer, int bytes)
      : message_(message), peer_(peer), bytes_(bytes) {}

  [[nodiscard]] int peer() const override { return peer_; }
  [[nodiscard]] std::size_t bytes() const override { return static_cast<std::size_t>(bytes_); }
  Transfer receive(std::span<std::byte> into) override {
    auto transfer = std::make_unique<RealTransfer>();
    if (auto begun = check(MPI_Imrecv(into.data(), bytes_, MPI_BYTE, &message_, &transfer->request),
                           "MPI_Imrecv");
        !begun) {
      return std::move(begun).error();
    }
    return std::unique_ptr<MpiTransfer>(std::move(transfer));
  }

 private:
  MPI_Message message_;
  const int peer_;
  const int bytes_;
};

// A letter lies here until MPI needs its bytes no more.
struct Outgoing {
  Letter letter;
  MPI_Request request = MPI_REQUEST_NULL;
};

class RealMpi final : public Mpi {
 public:
  [[nodiscard]] std::string library() const override {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    const std::string_view all(text.data(), static_cast<std::size_t>(length));
    std::string line(all.substr(0, all.find_first_of(",\n")));
    std::ranges::replace(line, '\t', ' ');
    return line;
  }

  core::Status initialise() override {
    if (flag_of(MPI_Finalized)) {
      return Error{ErrorCode::kUnavailable, "the program has finalised MPI already"};
    }
    if (!flag_of(MPI_Initialized)) {
      int provided = 0;
      // The program may use MPI, too, on threads of its own.
      if (auto status = check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided),
                              "MPI_Init_thread");
          !status) {
        return status;
      }
      is_ours_ = true;
    }
    return open_world();
  }

  [[nodiscard]] core::Status check_threads() const override {
    const int needed = is_ours_ ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE;
    if (threads_ >= needed) return {};
    return Error{
        ErrorCode::kUnavailable,
        fmt::format("MPI ({}) was initialised with fewer threads than moving data takes: "
                    "{} is needed",
                    library(), is_ours_ ? "MPI_THREAD_SERIALIZED" : "MPI_THREAD_MULTIPLE")};
  }

  [[nodiscard]] bool allows_all_threads() const override { return threads_ == MPI_THREAD_MULTIPLE; }

  void finalise() override {
    if (!is_ours_ || flag_of(MPI_Finalized)) return;
    MPI_Barrier(world_);
    drop_rest();
    for (Outgoing& each : outgoing_) MPI_Request_free(&each.request);
    MPI_Comm_free(&world_);
    MPI_Finalize();
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }

  core::Status send(int peer, int tag, std::span<const std::byte> letter) override {
    forget_sent();
    Outgoing& out = outgoing_.emplace_back();
    out.letter.assign(letter.begin(), letter.end());
    const int code = MPI_Isend(out.letter.data(), static_cast<int>(out.letter.size()), MPI_BYTE,
                               peer, tag, world_, &out.request);
    if (code != MPI_SUCCESS) outgoing_.pop_back();
    return check(code, fmt::format("sending to rank {} by MPI", peer));
  }

  core::Result<std::optional<Letter>> receive(int peer, int tag) override {
    forget_sent();
    int found = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status about{};
    if (auto looked = check(MPI_Improbe(peer, tag, world_, &found, &message, &about),
                            "looking for a message by MPI");
        !looked) {
      return std::move(looked).error();
    }
    if (found == 0) return std::optional<Letter>();
    int bytes = 0;
    MPI_Get_count(&about, MPI_BYTE, &bytes);
    Letter letter(static_cast<std::size_t>(bytes));
    auto got = check(MPI_Mrecv(letter.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE),
                     fmt::format("receiving from rank {} by MPI", peer));
    if (!got) return std::move(got).error();
    return std::optional(std::move(letter));
  }

  Transfer send_block(int peer, std::span<const std::byte> block) override {
    auto transfer = std::make_unique<RealTransfer>();
    if (auto begun = check(MPI_Isend(block.data(), static_cast<int>(block.size()), MPI_BYTE, peer,
                                     kBlockTag, world_, &transfer->request),
                           "MPI_Isend");
        !begun) {
      return std::move(begun).error();
    }
    return std::unique_ptr<MpiTransfer>(std::move(transfer));
  }

  core::Result<std::unique_ptr<MpiArrival>> next_block() override {
    int found = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status about{};
    if (auto looked =
            check(MPI_Improbe(MPI_ANY_SOURCE, kBlockTag, world_, &found, &message, &about),
                  "MPI_Improbe");
        !looked) {
      return std::move(looked).error();
    }
    if (found == 0) return std::unique_ptr<MpiArrival>();
    int bytes = 0;
    MPI_Get_count(&about, MPI_BYTE, &bytes);
    return std::unique_ptr<MpiArrival>(
        std::make_unique<RealArrival>(message, about.MPI_SOURCE, bytes));
  }

 private:
  // Messages of the program never meet ours, and a failure is told instead of ending the process.
  core::Status open_world() {
    if (auto made = check(MPI_Comm_dup(MPI_COMM_WORLD, &world_), "MPI_Comm_dup"); !made) {
      return made;
    }
    MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN);
    MPI_Query_thread(&threads_);
    MPI_Comm_rank(world_, &rank_);
    MPI_Comm_size(world_, &size_);
    return {};
  }

  // What nobody received: the ends of lanes that stopped after their peers, say. Some libraries
  // complain of such messages.
  void drop_rest() {
    while (true) {
      int found = 0;
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Status about{};
      if (MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, world_, &found, &message, &about) !=
              MPI_SUCCESS ||
          found == 0) {
        return;
      }
      int bytes = 0;
      MPI_Get_count(&about, MPI_BYTE, &bytes);
      Letter letter(static_cast<std::size_t>(bytes));
      MPI_Mrecv(letter.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    }
  }

  // Also lets MPI push on what is under way.
  void forget_sent() {
    std::erase_if(outgoing_, [](Outgoing& each) {
      int done = 0;
      return MPI_Test(&each.request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
    });
  }

  MPI_Comm world_ = MPI_COMM_NULL;
  int rank_ = -1;
  int size_ = 0;
  int threads_ = MPI_THREAD_SINGLE;
  bool is_ours_ = false;
  std::list<Outgoing> outgoing_;
};

Mpi& mpi_of_process() {
  static RealMpi mpi;
  return mpi;
}

MpiModule describe() {
  MpiModule module{.build = {}, .mpi = &mpi_of_process};
  core::build_id().copy(module.build.data(), module.build.size());
  return module;
}

}  // namespace
}  // namespace fasthorovod::transport

extern "C" __attribute__((visibility("default"))) const fasthorovod::transport::MpiModule*
fasthorovod_mpi_module() {
  static const fasthorovod::transport::MpiModule module = fasthorovod::transport::describe();
  return &module;
}
