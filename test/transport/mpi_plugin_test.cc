#include "transport/mpi_plugin.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace fasthorovod::transport {
namespace {

namespace fs = std::filesystem;

// A folder that goes with the test.
class Folder final {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "plugin-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string refusal(const std::vector<fs::path>& folders) {
  const auto opened = open_mpi_plugin(folders);
  if (opened) return "(opened)";
  EXPECT_EQ(opened.error().code, core::ErrorCode::kUnavailable);
  return opened.error().message;
}

TEST(MpiPlugin, SaysWhereItIsMissingAndWhatToInstall) {
  const Folder folder;
  const std::string text = refusal({{}, folder.path(), "/nowhere"});
  EXPECT_NE(text.find("is not in " + folder.path().string() + " nor in /nowhere"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("libopenmpi-dev"), std::string::npos);
}

TEST(MpiPlugin, PassesOnTheLoadersWords) {
  const Folder folder;
  std::ofstream(folder.path() / "fasthorovod-mpi.so") << "no library";
  const std::string text = refusal({folder.path()});
  EXPECT_NE(text.find("fasthorovod-mpi.so: "), std::string::npos) << text;
  EXPECT_NE(text.find("file too short"), std::string::npos) << text;
}

TEST(MpiPlugin, RefusesWhatIsNone) {
  const Folder folder;
  fs::create_symlink(NO_PLUGIN, folder.path() / "fasthorovod-mpi.so");
  const std::string text = refusal({folder.path()});
  EXPECT_NE(text.find("it is not a plug-in of fasthorovod"), std::string::npos) << text;
}

TEST(MpiPlugin, RefusesOneOfAnotherBuild) {
  const Folder folder;
  fs::create_symlink(OTHER_PLUGIN, folder.path() / "fasthorovod-mpi.so");
  const std::string text = refusal({folder.path()});
  EXPECT_NE(text.find("of another build"), std::string::npos) << text;
}

}  // namespace
}  // namespace fasthorovod::transport
