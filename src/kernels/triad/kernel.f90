! The triad as a Fortran programmer writes it; compiled by the environment's Fortran compiler.
module triad_in_fortran
  use, intrinsic :: iso_c_binding, only: c_size_t, c_double, c_ptr
  implicit none
contains

  subroutine triad_fortran(n, a, b, c, d, parameters) bind(c)
    integer(c_size_t), intent(in), value :: n
    real(c_double), intent(inout) :: a(n)
    real(c_double), intent(in) :: b(n), c(n), d(n)
    type(c_ptr), intent(in), value :: parameters
    a(:) = b(:) + c(:)*d(:)
  end subroutine triad_fortran

end module triad_in_fortran
