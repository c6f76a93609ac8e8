// Bodies of the control star's frames, the tuning that travels with the welcome, and unique ids.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "client/communicator/host_level.h"
#include "client/control/control_message.h"
#include "client/control/unique_id.h"
#include "client/tuning/policy.h"
#include "client/tuning/table.h"

using namespace tributary;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 7) {
    case 0:
      (void)client::decode_lane_failure(body);
      break;
    case 1:
      if (const auto holdings = client::decode_holdings(body)) {
        const auto again = client::decode_holdings(client::encode(*holdings));
        if (!again || *again != *holdings) std::abort();
      }
      break;
    case 2:
      if (const auto moves = client::decode_moves(body)) {
        const auto again = client::decode_moves(client::encode(*moves));
        if (!again || *again != *moves) std::abort();
      }
      break;
    case 3:
      (void)client::decode_progress(body);
      break;
    case 4:
      if (const auto policy = tuning::decode_policy(body)) {
        const auto again = tuning::decode_policy(tuning::encode(*policy));
        if (!again || *again != *policy) std::abort();
      }
      break;
    case 5:
      (void)tuning::parse_table(body, "fuzz");
      break;
    default: {
      client::UniqueIdBytes id{};
      std::ranges::copy(body.substr(0, id.size()), id.begin());
      (void)client::decode_unique_id(id);
      client::CommunicatorInfo between;
      client::decode_between(body, between);
      client::decode_between(client::encode_between(between), between);
    }
  }
  return 0;
}
