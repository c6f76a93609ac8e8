// Every version of the tuner's table. NCCL takes it from the net plugin's library if NCCL_TUNER_PLUGIN names no other.
#include <memory>
#include <string>

#include "client/plugins/nccl/guard.h"
#include "client/plugins/nccl/settings.h"
#include "client/plugins/nccl/tuner/model.h"
#include "client/plugins/nccl/tuner/table.h"

namespace tributary::nccl {
namespace {

using abi::Function;
using abi::Result;

constexpr const char* kName = "tributary";

struct TunerContext {
  std::size_t nodes = 0;
  TunerModel model{0};
};

/// Returns a text for the log: who decides.
std::string decides(const TunerModel& model) {
  if (!settings().tuner) return "NCCL decides";
  if (const auto& table = TunerTable::process(); table)
    return std::to_string(table->rows().size()) + " rows; CollNet is preferred if a row says so";
  return "CollNet is preferred where the cost model finds it quicker, on links of " +
         (model.link_rate() == 0 ? "any rate" : std::to_string(model.link_rate() / 1'000'000) + " Mbit/s");
}

Result begin(void** context, std::size_t nodes, abi::Logger logger) {
  return guarded("tuner init", [&] {
    set_logger(logger);
    auto made = std::make_unique<TunerContext>(TunerContext{nodes, TunerModel(link_rate_here())});
    info("tuner: " + decides(made->model), abi::log_subsystem::kInit | abi::log_subsystem::kTuning);
    *context = made.release();  // end() deletes the context
    return Result::success;
  });
}

Result init_old(std::size_t, std::size_t nodes, abi::Logger logger, void** context) {
  return begin(context, nodes, logger);
}
Result init(void** context, std::uint64_t, std::size_t, std::size_t nodes, abi::Logger logger, void*, void*) {
  return begin(context, nodes, logger);
}
Result end(void* context) {
  const std::unique_ptr<TunerContext> gone(static_cast<TunerContext*>(context));
  return Result::success;
}

bool prefers(void* context, Function function, std::size_t bytes) {
  if (!settings().tuner) return false;
  const auto& [nodes, model] = *static_cast<const TunerContext*>(context);
  const auto& table = TunerTable::process();
  return table ? table->prefers_collnet(function, bytes, nodes) : model.prefers_collnet(function, bytes, nodes);
}

bool avoids(void* context, Function function, std::size_t bytes) {
  if (!settings().tuner || TunerTable::process()) return false;
  const auto& [nodes, model] = *static_cast<const TunerContext*>(context);
  return model.avoids_collnet(function, bytes, nodes);
}

Result collective_info_v2(void* context, Function function, std::size_t bytes, int collnet_support, int, int,
                          int* algorithm, int* protocol, int*) {
  if (collnet_support == 0 || !prefers(context, function, bytes)) return Result::success;
  *algorithm = static_cast<int>(abi::Algorithm::collnet_chain);
  *protocol = static_cast<int>(abi::Protocol::simple);
  return Result::success;
}
Result collective_info(void* context, Function function, std::size_t bytes, int, float** costs, int algorithms,
                       int protocols, int, int*) {
  auto* const all = reinterpret_cast<float*>(costs);
  if (prefers(context, function, bytes)) {
    prefer_collnet(all, algorithms, protocols);
  } else if (avoids(context, function, bytes)) {
    avoid_collnet(all, algorithms, protocols);
  }
  return Result::success;
}
Result collective_info_v3(void* context, Function function, std::size_t bytes, int pipelined, float** costs,
                          int algorithms, int protocols, int* channels) {
  return collective_info(context, function, bytes, pipelined, costs, algorithms, protocols, 0, channels);
}

}  // namespace
}  // namespace tributary::nccl

namespace nccl = tributary::nccl;
namespace abi = tributary::nccl::abi;

#define TRIBUTARY_NCCL_TABLE extern "C" __attribute__((visibility("default"))) const

TRIBUTARY_NCCL_TABLE abi::TunerV6 ncclTunerPlugin_v6 = {.name = nccl::kName,
                                                        .init = nccl::init,
                                                        .collective_info = nccl::collective_info,
                                                        .finalize = nccl::end,
                                                        .chunk_size = nullptr};
TRIBUTARY_NCCL_TABLE abi::TunerV5 ncclTunerPlugin_v5 = {
    .name = nccl::kName, .init = nccl::init, .collective_info = nccl::collective_info, .finalize = nccl::end};
TRIBUTARY_NCCL_TABLE abi::TunerV4 ncclTunerPlugin_v4 = {
    .name = nccl::kName, .init = nccl::init_old, .collective_info = nccl::collective_info, .destroy = nccl::end};
TRIBUTARY_NCCL_TABLE abi::TunerV3 ncclTunerPlugin_v3 = {
    .name = nccl::kName, .init = nccl::init_old, .collective_info = nccl::collective_info_v3, .destroy = nccl::end};
TRIBUTARY_NCCL_TABLE abi::TunerV2 ncclTunerPlugin_v2 = {
    .name = nccl::kName, .init = nccl::init_old, .collective_info = nccl::collective_info_v2, .destroy = nccl::end};
