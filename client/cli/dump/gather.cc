#include "client/cli/dump/gather.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "client/cli/dump/ports.h"
#include "client/cli/meter/own_host.h"
#include "service-kit/status_folder.h"
#include "service-kit/whole_file.h"

namespace tributary::cli {
namespace {

std::string_view line_of(Question question) noexcept {
  return question == Question::calls ? "calls json\n" : "dump json\n";
}

std::string file_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

bool is_record(const std::filesystem::directory_entry& entry) {
  std::error_code failed;
  return entry.path().extension() == ".json" && entry.is_regular_file(failed);
}

/// The name of a port or a file is unique on its host, and the host's name makes it unique among the hosts that share the
/// folder.
Status save_one(const std::string& into, const std::filesystem::path& from, const std::string& text) {
  const std::string path = into + "/" + service::file_name_of(meter::own_host()) + "-" + from.stem().string() + ".json";
  if (const Status written = service::write_whole_file(path, text, 0600); !written)
    return fail(Errc::io, path + " was not written: " + written.error().message);
  return {};
}

}  // namespace

Result<Gathered> gather(const std::string& folder, Question question) {
  const auto ports = ports_in(folder);
  if (!ports) return std::unexpected(ports.error());
  Gathered gathered;
  const auto note = [&](const std::string& path, const Status& added) {
    if (!added) gathered.silent.push_back(path + ": " + added.error().message);
  };
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    if (is_record(entry)) note(entry.path().string(), add_document(gathered.groups, file_text(entry.path())));
  }
  for (const PortAnswer& answer : ask_ports(*ports, line_of(question))) {
    note(answer.port,
         answer.trouble.empty() ? add_document(gathered.groups, answer.text) : fail(Errc::io, answer.trouble));
  }
  return gathered;
}

Result<std::size_t> save_records(const std::string& folder, const std::string& into, std::vector<std::string>& silent) {
  const auto ports = ports_in(folder);
  if (!ports) return std::unexpected(ports.error());
  std::error_code failed;
  std::filesystem::create_directories(into, failed);
  if (failed) return fail(Errc::io, into + " cannot be made: " + failed.message());
  std::size_t saved = 0;
  for (const PortAnswer& answer : ask_ports(*ports, line_of(Question::whole))) {
    if (!answer.trouble.empty()) {
      silent.push_back(answer.port + ": " + answer.trouble);
      continue;
    }
    if (const Status written = save_one(into, answer.port, answer.text); !written)
      return std::unexpected(written.error());
    ++saved;
  }
  // Failed communicators left these files.
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    if (!is_record(entry)) continue;
    if (const Status written = save_one(into, entry.path(), file_text(entry.path())); !written)
      return std::unexpected(written.error());
    ++saved;
  }
  return saved;
}

}  // namespace tributary::cli
