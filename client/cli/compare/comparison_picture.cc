#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <vector>

#include "client/cli/compare/comparison_report.h"
#include "client/cli/terminal/table.h"

namespace tributary::cli {
namespace {

constexpr double kWidth = 800, kHeight = 430;
constexpr double kLeft = 62, kRight = 96, kTop = 84, kBottom = 40;
constexpr double kPlotWidth = kWidth - kLeft - kRight, kPlotHeight = kHeight - kTop - kBottom;
constexpr double kGroupPart = 0.94;  // the part of a size's width that its bars use
constexpr const char* kInk = "#222222";
constexpr const char* kFaint = "#d9d9d9";

struct Series {
  std::string name;
  const char* colour;
  std::vector<std::optional<double>> microseconds;
};

std::vector<Series> series_of(const Comparison& comparison) {
  const bool one = comparison.aggregators == 1;
  std::vector<Series> all{
      {fmt::format("Tributary, {} {}", comparison.aggregators, one ? "aggregator" : "aggregators"), "#0b5fa5", {}},
      {"Tributary, the ranks alone", "#8cc4ee", {}},
      {"Gloo", "#e07b39", {}}};
  for (const ComparedSize& size : comparison.sizes) {
    all[0].microseconds.emplace_back(size.tree_us);
    all[1].microseconds.emplace_back(size.ranks_us);
    all[2].microseconds.push_back(size.gloo_us);
  }
  if (!comparison.gloo_absent.empty()) all.pop_back();
  return all;
}

class Drawing {
 public:
  explicit Drawing(const Comparison& comparison) : comparison_(comparison), series_(series_of(comparison)) {
    for (const Series& series : series_) {
      for (std::size_t i = 0; i < comparison_.sizes.size(); ++i)
        if (series.microseconds[i]) part_max_ = std::max(part_max_, 1.07 * part_of_rate(i, *series.microseconds[i]));
    }
  }

  std::string draw() {
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
        "font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" fill=\"{2}\">\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
        kWidth, kHeight, kInk);
    text(kWidth / 2, 22, "middle", 14, "all_reduce of float32: " + words_of(comparison_));
    legend();
    axes();
    limit(1, "a tree");
    limit(1 / gain_of_links(comparison_), "the ranks alone");
    for (std::size_t i = 0; i < comparison_.sizes.size(); ++i) group(i);
    // Give the times a white edge, so that they are readable on top of lines.
    return out_ +
           "<g text-anchor=\"middle\" font-size=\"9\" stroke=\"#ffffff\" stroke-width=\"2\" "
           "paint-order=\"stroke\">\n" +
           times_ + "</g>\n</svg>\n";
  }

 private:
  /// Returns bytes per time, as a part of the link's rate.
  [[nodiscard]] double part_of_rate(std::size_t size, double microseconds) const {
    return static_cast<double>(comparison_.sizes[size].bytes) * 8 / (microseconds * 1e-6) /
           static_cast<double>(comparison_.link_bits);
  }
  [[nodiscard]] double y_of(double part) const { return kTop + kPlotHeight * (1 - part / part_max_); }

  void text(double x, double y, const char* anchor, int size, const std::string& words) {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\">{}</text>\n", x, y, anchor,
                        size, words);
  }
  void rectangle(double x, double y, double width, double height, const char* colour) {
    out_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x, y,
                        width, height, colour);
  }
  void line(double y, const char* colour, const char* dashes) {
    out_ += fmt::format(
        "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-dasharray=\"{}\"/>\n",
        kLeft, kWidth - kRight, y, y, colour, dashes);
  }

  void legend() {
    constexpr double kEach = 240, kSquare = 11, kAt = 38;
    double x = (kWidth - kEach * static_cast<double>(series_.size())) / 2 + 20;
    for (const Series& series : series_) {
      rectangle(x, kAt, kSquare, kSquare, series.colour);
      text(x + kSquare + 6, kAt + kSquare - 1, "start", 12, series.name);
      x += kEach;
    }
  }

  void axes() {
    for (const int percent : {0, 25, 50, 75, 100}) {
      const double y = y_of(percent / 100.0);
      line(y, percent == 0 ? kInk : kFaint, "none");
      text(kLeft - 6, y + 4, "end", 11, fmt::format("{} %", percent));
    }
    text(kLeft - 44, kTop - 10, "start", 11, "bytes per time, as a part of a link's rate; on each bar its time");
  }

  void group(std::size_t index) {
    const double room = kPlotWidth / static_cast<double>(comparison_.sizes.size());
    const double width = room * kGroupPart / static_cast<double>(series_.size());
    const double begin = kLeft + room * (static_cast<double>(index) + (1 - kGroupPart) / 2);
    for (std::size_t i = 0; i < series_.size(); ++i) {
      const auto& took = series_[i].microseconds[index];
      if (!took) continue;
      const double x = begin + width * static_cast<double>(i), y = y_of(part_of_rate(index, *took));
      rectangle(x, y, width - 2, kTop + kPlotHeight - y, series_[i].colour);
      times_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x + width / 2 - 1, y - 4, time_text(*took));
    }
    text(begin + room * kGroupPart / 2, kHeight - kBottom + 20, "middle", 12,
         bytes_text(comparison_.sizes[index].bytes));
  }

  void limit(double part, const std::string& words) {
    line(y_of(part), kInk, "6 4");
    text(kWidth - kRight + 6, y_of(part) - 2, "start", 10, "limit of");
    text(kWidth - kRight + 6, y_of(part) + 11, "start", 10, words);
  }

  const Comparison& comparison_;
  const std::vector<Series> series_;
  double part_max_ = 1.1;  // the highest value of the plot
  std::string out_;
  std::string times_;
};

}  // namespace

std::string comparison_picture(const Comparison& comparison) {
  return Drawing(comparison).draw();
}

}  // namespace tributary::cli
