// A bar that is written over itself while somebody looks.
#pragma once

#include <string>

namespace sangam {

/// On standard error where that is a terminal; at a share of 1 the bar is gone.
void show_progress(const std::string& name, double share);

}  // namespace sangam
