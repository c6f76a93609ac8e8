#include <iostream>
#include <tributary/tributary.hpp>
#include <vector>

int main() {
  try {
    tributary::Communicator comm(1, tributary::UniqueId::create(), 0);
    std::vector<double> values{1, 2};
    comm.all_reduce(values, values, tributary::Op::sum);
    return values == std::vector<double>{1, 2} ? 0 : 1;
  } catch (const tributary::Error& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
