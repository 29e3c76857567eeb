#include "torch_binding/c10d/first_word.h"

#include <sstream>

namespace fasthorovod::torch_binding {

std::string FirstWord::text() const {
  return (share ? "share " : "start ") + job + " " + secret + " " + std::to_string(id);
}

core::Result<FirstWord> FirstWord::parse(const std::string& text) {
  std::istringstream stream(text);
  std::string verb;
  FirstWord word;
  if (stream >> verb >> word.job >> word.secret >> word.id &&
      (verb == "share" || verb == "start")) {
    word.share = verb == "share";
    return word;
  }
  return core::Error{core::ErrorCode::kProtocol,
                     "what the first rank left in the store is not understood", 0};
}

}  // namespace fasthorovod::torch_binding
