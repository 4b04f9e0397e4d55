// Lines and areas over time in a frame with axes, as SVG.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sangam::sim {

/// From `low` to `high` with a mark each `step`.
struct Axis {
  double low = 0.0;
  double high = 1.0;
  double step = 1.0;
};

/// An axis over [low, high] whose marks are 1, 2 or 5 times a power of ten apart, at most `marks` pieces. Both ends
/// lie on a mark.
[[nodiscard]] Axis round_axis(double low, double high, int marks);

/// A value that holds in [begin, end) on the time axis; nothing: a gap.
struct Piece {
  double begin = 0.0;
  double end = 0.0;
  std::optional<double> value;
};

enum class Stroke {
  line,   ///< Through the middles of the pieces.
  steps,  ///< Along the pieces.
};

struct Series {
  std::string label;  ///< For the legend; empty: none.
  std::string style;  ///< Class of the style sheet.
  Stroke stroke = Stroke::line;
  bool filled = false;  ///< Down to the axis.
  std::vector<Piece> pieces;
};

struct Frame {
  double left = 0.0;  ///< Of the drawing area, in pixels; labels stand outside.
  double top = 0.0;
  double width = 0.0;
  double height = 0.0;
};

struct Panel {
  std::string heading;  ///< What is drawn, with its unit.
  std::string unit;     ///< Behind the numbers of the value axis, as " %".
  Axis time;
  Axis value;
  std::vector<Series> series;
  bool time_labels = false;  ///< Numbers at the time axis.
};

/// Text on the page; `style` is a class, `anchor` start, middle or end.
struct Label {
  double x = 0.0;
  double y = 0.0;
  std::string_view style;
  std::string_view anchor = "start";
};
[[nodiscard]] std::string text_at(const Label& label, const std::string& text);

[[nodiscard]] std::string draw(const Panel& panel, const Frame& frame);

}  // namespace sangam::sim
