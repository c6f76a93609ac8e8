# Sets the environment of every test; ctest reads this file before it runs the first one.
# Communicators wait for their trees, however slow the machine is, because many tests look at traffic through trees. The
# tests of the pause after which a communicator begins without trees set that pause themselves.
set(ENV{TRIBUTARY_BEGIN_WITHIN} 10000)
