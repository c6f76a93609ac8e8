# Read by ctest before it runs the first test. Tests that look at what goes through trees begin with one, however slow
# the machine is; the pause by which a communicator begins without is tested where a test sets it.
set(ENV{TRIBUTARY_BEGIN_WITHIN} 10000)
