#include "verbs_world.h"

namespace tributary::transport::test {

std::vector<NamedWorld> worlds() {
  const auto world = [](const VerbsSettings& settings) {
    return [settings] { return std::make_unique<VerbsWorld>(settings); };
  };
  const VerbsSettings plain{.frames_queued_max = kFramesQueuedMax};
  const VerbsSettings few_receives{
      .frames_queued_max = kFramesQueuedMax, .receive_depth = 4, .read_bytes_max = 65536, .reads_in_flight = 2};
  const VerbsSettings all_fetched{.frames_queued_max = kFramesQueuedMax, .eager_bytes = 16, .inline_bytes = 0};
  const VerbsSettings sleeps{.frames_queued_max = kFramesQueuedMax, .spin_max = {}};
  const VerbsSettings no_windows{.frames_queued_max = kFramesQueuedMax, .eager_bytes = 1024, .windows_max = 0};
  const VerbsSettings four_pairs{.frames_queued_max = kFramesQueuedMax, .queue_pairs = 4};
  const VerbsSettings few_receives_three_pairs{
      .frames_queued_max = kFramesQueuedMax, .receive_depth = 4, .queue_pairs = 3, .eager_bytes = 1024};
  const VerbsSettings post_send{
      .frames_queued_max = kFramesQueuedMax, .queue_pairs = 2, .extended_posting = false, .eager_bytes = 1024};
  return {{"ibv_post_send", world(post_send)},
          {"four_queue_pairs", world(four_pairs)},
          {"few_receives_three_queue_pairs", world(few_receives_three_pairs)},
          {"plain", world(plain)},
          {"few_receives", world(few_receives)},
          {"payloads_fetched", world(all_fetched)},
          {"no_spinning", world(sleeps)},
          {"no_memory_windows", world(no_windows)}};
}

}  // namespace tributary::transport::test
