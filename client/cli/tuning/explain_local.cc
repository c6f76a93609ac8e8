#include "client/cli/tuning/explain_local.h"

#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "client/cli/terminal/table.h"
#include "client/tuning/attach_speed.h"
#include "client/tuning/cost_model.h"
#include "client/tuning/figures.h"
#include "client/tuning/local_ways.h"
#include "tributary/protocol/reason.h"

namespace tributary::cli {
namespace {

using nlohmann::json;
using tuning::DataWay;

/// The answer for a call of ranks on one host.
struct LocalAnswer {
  tuning::Call call;
  std::uint64_t offered_bytes = 0;  // bytes of a rank's input
  bool attaches = false;            // whether ranks can attach, as far as this process can know
  std::string no_attach;            // the reason if they cannot
  DataWay plain{};
  DataWay registered{};
};

bool variable_is(const char* name, std::string_view value) {
  const char* text = std::getenv(name);
  return text != nullptr && text == value;
}

/// Returns the bytes of a rank's input; for gather and all_gather the larger buffer is the result.
std::uint64_t offered_of(const tuning::Call& call) {
  const bool gathers = call.collective == Collective::all_gather || call.collective == Collective::gather;
  return gathers ? call.bytes / call.ranks : call.bytes;
}

LocalAnswer local_answer_of(const ExplainOptions& options) {
  LocalAnswer answer;
  const std::uint64_t whole = options.bytes / size_of(options.dtype) * size_of(options.dtype);
  answer.call = {.collective = options.collective,
                 .ranks = options.ranks,
                 .bytes = options.collective == Collective::barrier ? 0 : whole};
  answer.offered_bytes = offered_of(answer.call);
  const std::uint32_t cores = options.cores != 0 ? options.cores : tuning::cores_here();
  if (variable_is("TRIBUTARY_CMA", "off")) {
    answer.no_attach = "TRIBUTARY_CMA=off";
  } else if (options.ranks > cores) {
    answer.no_attach = fmt::format("there are more ranks ({}) than cores ({})", options.ranks, cores);
  } else if (!variable_is("TRIBUTARY_CMA", "on") && !tuning::attach_is_quick()) {
    answer.no_attach = tuning::kAttachIsSlow;
  }
  answer.attaches = answer.no_attach.empty();
  answer.plain = tuning::way_of(options.collective, answer.offered_bytes, false, answer.attaches);
  answer.registered = tuning::way_of(options.collective, answer.offered_bytes, true, answer.attaches);
  return answer;
}

const char* name(DataWay way) {
  switch (way) {
    case DataWay::notes:
      return "notes";
    case DataWay::regions:
      return "regions";
    case DataWay::attach:
      return "attach";
    case DataWay::chunks:
      return "chunks";
  }
  return "invalid";
}

std::string local_reason(const LocalAnswer& answer) {
  using tuning::kAttachBytesMax;
  using tuning::kAttachBytesMin;
  if (answer.plain == DataWay::notes)
    return fmt::format("a rank's input has {} bytes, and up to {} travel with the note of the call",
                       answer.offered_bytes, tuning::kNoteBytes);
  const std::string attached = fmt::format("reductions of {} to {} bytes", kAttachBytesMin, kAttachBytesMax);
  if (answer.plain == DataWay::attach)
    return attached + " are read in place through the kernel, if it allows that (else copied in chunks)";
  if (tuning::is_worth_attaching(answer.call.collective, answer.offered_bytes))
    return "not through the kernel, because " + answer.no_attach;
  return "the kernel copies only " + attached;
}

void show_local_table(const LocalAnswer& answer, const ExplainOptions& options) {
  std::printf("%s of %llu bytes (%s) over %u ranks: in the shared memory of their host, by %s\n",
              std::string(to_string(answer.call.collective)).c_str(),
              static_cast<unsigned long long>(answer.call.bytes), std::string(to_string(options.dtype)).c_str(),
              options.ranks, name(answer.plain));
  std::printf("why: %s\n", coded(Reason::one_host, "all ranks are on one host; " + local_reason(answer)).c_str());
  if (answer.registered != answer.plain)
    std::printf("with buffers that are registered on all ranks (tributary_mem_register): by %s, without copies\n",
                name(answer.registered));
  std::printf("\n");
  Table table({"PICKED", "WAY", "WHAT", "WHEN"});
  const auto add = [&](DataWay way, const char* what, const std::string& when) {
    const char* picked = way == answer.plain ? "*" : (way == answer.registered ? "registered" : "");
    table.add({picked, name(way), what, when});
  };
  add(DataWay::notes, "each rank combines the data of all notes",
      fmt::format("inputs up to {} bytes", tuning::kNoteBytes));
  add(DataWay::regions, "straight between the callers' buffers, which all ranks have mapped",
      "buffers are registered on all ranks");
  add(DataWay::attach, "the same, through the kernel",
      fmt::format("reductions of {} to {} bytes, and no more ranks than cores", tuning::kAttachBytesMin,
                  tuning::kAttachBytesMax));
  add(DataWay::chunks, "copied into shared memory, reduced there, copied out", "everything else");
  std::fputs(table.text().c_str(), stdout);
}

void show_local_json(const LocalAnswer& answer, const ExplainOptions& options) {
  const json all = {{"collective", to_string(answer.call.collective)},
                    {"bytes", answer.call.bytes},
                    {"ranks", options.ranks},
                    {"hosts", 1},
                    {"dtype", to_string(options.dtype)},
                    {"picked", {{"path", "local"}, {"algorithm", name(answer.plain)}}},
                    {"registered", name(answer.registered)},
                    {"why", "all ranks are on one host; " + local_reason(answer)},
                    {"code", code_of(Reason::one_host)},
                    {"estimates", json::array()}};
  std::puts(all.dump(1, ' ', false, json::error_handler_t::replace).c_str());
}

}  // namespace

bool may_share_memory() {
  return !variable_is("TRIBUTARY_LOCAL", "off") && !variable_is("TRIBUTARY_PATH", "in-network");
}

/// True if the options put all ranks on one host, and no setting forbids shared memory.
bool all_on_one_host(const ExplainOptions& options) {
  if (!may_share_memory() || variable_is("TRIBUTARY_PATH", "fallback")) return false;
  return options.ranks > 1 && (options.ranks_per_host >= options.ranks || options.link_bits == 0U);
}

void explain_local(const ExplainOptions& options) {
  const LocalAnswer answer = local_answer_of(options);
  options.json ? show_local_json(answer, options) : show_local_table(answer, options);
}

}  // namespace tributary::cli
