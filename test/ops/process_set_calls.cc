#include "test/ops/process_set_calls.h"

#include <utility>

namespace fasthorovod::ops::testing {

core::Result<Handle> change_sets(Engine& engine, core::OpKind op, const std::string& name,
                                 std::vector<int> ranks) {
  Submission submission;
  submission.request.op = op;
  submission.request.name = name;
  submission.request.members = std::move(ranks);
  return engine.submit(std::move(submission));
}

core::GroupId add_set(Engine& engine, const std::string& name, std::vector<int> ranks) {
  const auto handle = change_sets(engine, core::OpKind::kAddGroup, name, std::move(ranks));
  expect_success(handle);
  return handle ? handle->group() : core::kWorldGroup;
}

Submission allreduce_in(core::GroupId set, const std::string& name, Floats& values) {
  Submission submission = allreduce_of(name, values);
  submission.request.group = set;
  return submission;
}

}  // namespace fasthorovod::ops::testing
