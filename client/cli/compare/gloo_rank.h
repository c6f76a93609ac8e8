#pragma once
#include <string_view>

namespace tributary::cli {

/// The text of gloo_rank.py; CMake puts it into a source file.
extern const std::string_view kGlooRank;

}  // namespace tributary::cli
