! The loop as the source has it (anderson1997, section 3.2.3): dummy arguments of Fortran do not overlap.
! distributed.F90 is this file again, compiled with the compiler's own loop distribution, which is forbidden here.
subroutine fdtd_fortran_fused(n, first, last, from, to, c, ex, ey, ez, hx, hy, hz) bind(c)
  use, intrinsic :: iso_c_binding, only: c_size_t, c_float
  implicit none
  integer(c_size_t), intent(in), value :: n, first, last, from, to  ! planes first <= j < last, rows from <= i < to, counted from 0
  real(c_float), intent(in) :: c(6)                         ! caex, cbex, caey, cbey, caez, cbez
  real(c_float), intent(inout) :: ex(n,n,*), ey(n,n,*), ez(n,n,*)
  real(c_float), intent(in) :: hx(n,n,*), hy(n,n,*), hz(n,n,*)
  real(c_float) :: caex, cbex, caey, cbey, caez, cbez
  integer(c_size_t) :: i, j, k
  caex = c(1); cbex = c(2); caey = c(3); cbey = c(4); caez = c(5); cbez = c(6)
  do j = first + 1, last
    do i = from + 1, to
      do k = 2, n - 2
        ex(k,i,j) = caex*(ex(k,i,j) + cbex*(hz(k,i,j) - hz(k,i,j-1) + hy(k,i,j) - hy(k-1,i,j)))
        ey(k,i,j) = caey*(ey(k,i,j) + cbey*(hx(k-1,i,j) - hx(k,i,j) + hz(k,i-1,j) - hz(k,i,j)))
        ez(k,i,j) = caez*(ez(k,i,j) + cbez*(hx(k,i,j-1) - hx(k,i,j) + hy(k,i,j) - hy(k,i-1,j)))
      end do
    end do
  end do
end subroutine fdtd_fortran_fused
