! The same loop in the language of its source; compiled by the environment's Fortran compiler.
module ninepoint_in_fortran
  use, intrinsic :: iso_c_binding, only: c_size_t, c_double
  implicit none
  real(c_double), parameter :: rel = 0.75_c_double      ! NINEPOINT_REL of kernel.h
contains

  ! Of the columns first to last - 1 the points from to to - 1, counted from 0 as in C.
  subroutine ninepoint_fortran(ld, first, last, from, to, x, y, aa, dd, rx, ry) bind(c)
    integer(c_size_t), intent(in), value :: ld, first, last, from, to
    real(c_double), intent(in) :: x(ld, 0:*), y(ld, 0:*)
    real(c_double), intent(inout) :: aa(ld, 0:*), dd(ld, 0:*), rx(ld, 0:*), ry(ld, 0:*)
    real(c_double) :: x_i, x_j, x_ii, x_jj, x_ij, y_i, y_j, y_ii, y_jj, y_ij, a, b, c
    integer(c_size_t) :: i, j
    do j = first, last - 1
      do i = from + 1, to
        x_i = x(i+1,j) - x(i-1,j)
        y_i = y(i+1,j) - y(i-1,j)
        x_j = x(i,j+1) - x(i,j-1)
        y_j = y(i,j+1) - y(i,j-1)
        a = 0.25_c_double*(x_j*x_j + y_j*y_j)
        b = 0.25_c_double*(x_i*x_i + y_i*y_i)
        c = 0.125_c_double*(x_i*x_j + y_i*y_j)
        x_ii = x(i+1,j) - 2*x(i,j) + x(i-1,j)
        y_ii = y(i+1,j) - 2*y(i,j) + y(i-1,j)
        x_jj = x(i,j+1) - 2*x(i,j) + x(i,j-1)
        y_jj = y(i,j+1) - 2*y(i,j) + y(i,j-1)
        x_ij = x(i+1,j+1) - x(i+1,j-1) - x(i-1,j+1) + x(i-1,j-1)
        y_ij = y(i+1,j+1) - y(i+1,j-1) - y(i-1,j+1) + y(i-1,j-1)
        aa(i,j) = -b
        dd(i,j) = b + b*a*rel
        rx(i,j) = a*x_ii + b*x_jj - c*x_ij
        ry(i,j) = a*y_ii + b*y_jj - c*y_ij
      end do
    end do
  end subroutine ninepoint_fortran

end module ninepoint_in_fortran
