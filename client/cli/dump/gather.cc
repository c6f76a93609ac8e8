#include "client/cli/dump/gather.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "client/cli/dump/ports.h"

namespace tributary::cli {
namespace {

std::string_view line_of(Question question) noexcept {
  return question == Question::calls ? "calls json\n" : "dump json\n";
}

std::string file_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
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
    const std::string path = entry.path().string();
    if (path.ends_with(".json") && entry.is_regular_file(failed))
      note(path, add_document(gathered.groups, file_text(path)));
  }
  for (const PortAnswer& answer : ask_ports(*ports, line_of(question))) {
    note(answer.port,
         answer.trouble.empty() ? add_document(gathered.groups, answer.text) : fail(Errc::io, answer.trouble));
  }
  return gathered;
}

}  // namespace tributary::cli
