// Paths, grid and labels of one panel.
#include "sim/report/chart.hpp"

#include <algorithm>
#include <cmath>

#include "sim/report/figures.hpp"

namespace sangam::sim {
namespace {

constexpr double kAbove = 12.0;  // Of heading and legend over the frame.

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return safe;
}

std::string pixels(double value) {
  return decimal(value, 1);
}

std::string line(double x1, double y1, double x2, double y2, std::string_view style) {
  return "<line x1=\"" + pixels(x1) + "\" y1=\"" + pixels(y1) + "\" x2=\"" + pixels(x2) + "\" y2=\"" + pixels(y2) + "\" class=\"" +
         std::string(style) + "\"/>\n";
}

double part_of(const Axis& axis, double value) {
  return std::clamp((value - axis.low) / (axis.high - axis.low), 0.0, 1.0);
}

/// A mark's number with as many places as the step needs.
std::string mark_text(const Axis& axis, double mark) {
  const int places = axis.step >= 1.0 ? 0 : std::min(6, int(std::ceil(-std::log10(axis.step) - 1e-9)));
  return places == 0 ? grouped(std::llround(mark)) : decimal(mark, places);
}

template <class Do>
void for_each_mark(const Axis& axis, Do act) {
  const auto count = std::llround((axis.high - axis.low) / axis.step + 1e-9);
  for (long long i = 0; i <= count; ++i) {
    const double mark = axis.low + double(i) * axis.step;
    if (mark <= axis.high + axis.step * 1e-9) act(mark);
  }
}

class PanelDrawing {
 public:
  PanelDrawing(const Panel& panel, const Frame& frame) : panel_(panel), frame_(frame) {}

  std::string all() {
    return text_at({frame_.left, frame_.top - kAbove, "heading"}, panel_.heading) + legend() + grid() + curves() +
           line(frame_.left, bottom(), frame_.left + frame_.width, bottom(), "axis");
  }

 private:
  double bottom() const { return frame_.top + frame_.height; }
  double x(double time) const { return frame_.left + part_of(panel_.time, time) * frame_.width; }
  double y(double value) const { return bottom() - part_of(panel_.value, value) * frame_.height; }
  std::string point(double time, double value) const { return pixels(x(time)) + "," + pixels(y(value)); }

  std::string grid() const {
    std::string marks;
    for_each_mark(panel_.value, [&](double mark) {
      marks += line(frame_.left, y(mark), frame_.left + frame_.width, y(mark), "grid");
      marks += text_at({frame_.left - 8.0, y(mark) + 4.0, "mark", "end"}, mark_text(panel_.value, mark) + panel_.unit);
    });
    for_each_mark(panel_.time, [&](double mark) {
      marks += line(x(mark), bottom(), x(mark), bottom() + 4.0, "axis");
      if (panel_.time_labels) marks += text_at({x(mark), bottom() + 18.0, "mark", "middle"}, mark_text(panel_.time, mark));
    });
    return marks;
  }

  /// One text that ends at the right edge, so that it fits whatever the font.
  std::string legend() const {
    std::string entries;
    for (const auto& series : panel_.series) {
      if (series.label.empty()) continue;
      entries += std::string(entries.empty() ? "" : "&#160;&#160;&#160; ") + "<tspan class=\"" + series.style + " swatch\">■</tspan> " + escaped(series.label);
    }
    if (entries.empty()) return "";
    return "<text x=\"" + pixels(frame_.left + frame_.width) + "\" y=\"" + pixels(frame_.top - kAbove) +
           "\" class=\"mark\" text-anchor=\"end\">" + entries + "</text>\n";
  }

  /// The points of pieces [from, until), which all have values.
  std::string points(const Series& series, std::size_t from, std::size_t until) const {
    std::string path;
    const auto go = [&](double time, double value) { path += (path.empty() ? "M" : " L") + point(time, value); };
    go(series.pieces[from].begin, *series.pieces[from].value);
    for (std::size_t i = from; i < until; ++i) {
      const auto& piece = series.pieces[i];
      if (series.stroke == Stroke::line) {
        go((piece.begin + piece.end) / 2.0, *piece.value);
      } else {
        go(piece.begin, *piece.value);
        go(piece.end, *piece.value);
      }
    }
    go(series.pieces[until - 1].end, *series.pieces[until - 1].value);
    return path;
  }

  std::string curves() const {
    std::string drawn;
    for (const auto& series : panel_.series) {
      for (std::size_t from = 0; from < series.pieces.size();) {
        std::size_t until = from;
        while (until < series.pieces.size() && series.pieces[until].value) ++until;
        if (until > from) drawn += stretch(series, from, until);
        from = until + 1;
      }
    }
    return drawn;
  }

  std::string stretch(const Series& series, std::size_t from, std::size_t until) const {
    const std::string path = points(series, from, until);
    const std::string stroke = "<path d=\"" + path + "\" class=\"" + series.style + " stroke\"/>\n";
    if (!series.filled) return stroke;
    const std::string floor = " L" + point(series.pieces[until - 1].end, panel_.value.low) + " L" + point(series.pieces[from].begin, panel_.value.low) + " Z";
    return "<path d=\"" + path + floor + "\" class=\"" + series.style + " fill\"/>\n" + stroke;
  }

  const Panel& panel_;
  const Frame& frame_;
};

}  // namespace

Axis round_axis(double low, double high, int marks) {
  if (!(high > low)) high = low + 1.0;
  const double least = (high - low) / marks;
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  Axis axis{low, high, 10.0 * power};
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= least * (1.0 - 1e-9)) axis.step = factor * power;
  }
  axis.low = axis.step * std::floor(low / axis.step + 1e-9);
  axis.high = axis.step * std::ceil(high / axis.step - 1e-9);
  return axis;
}

std::string text_at(const Label& label, const std::string& text) {
  return "<text x=\"" + pixels(label.x) + "\" y=\"" + pixels(label.y) + "\" class=\"" + std::string(label.style) + "\" text-anchor=\"" +
         std::string(label.anchor) + "\">" + escaped(text) + "</text>\n";
}

std::string draw(const Panel& panel, const Frame& frame) {
  return PanelDrawing(panel, frame).all();
}

}  // namespace sangam::sim
