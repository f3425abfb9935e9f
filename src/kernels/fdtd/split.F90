! The loop of fused.F90, its inner loop split by hand.

! {EX, EY}, {EZ}: the source's best.
subroutine fdtd_fortran_split2(n, first, last, from, to, c, ex, ey, ez, hx, hy, hz) bind(c)
  use, intrinsic :: iso_c_binding, only: c_size_t, c_float
  implicit none
  integer(c_size_t), intent(in), value :: n, first, last, from, to
  real(c_float), intent(in) :: c(6)
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
      end do
      do k = 2, n - 2
        ez(k,i,j) = caez*(ez(k,i,j) + cbez*(hx(k,i,j-1) - hx(k,i,j) + hy(k,i,j) - hy(k,i-1,j)))
      end do
    end do
  end do
end subroutine fdtd_fortran_split2

! One loop for each statement.
subroutine fdtd_fortran_split3(n, first, last, from, to, c, ex, ey, ez, hx, hy, hz) bind(c)
  use, intrinsic :: iso_c_binding, only: c_size_t, c_float
  implicit none
  integer(c_size_t), intent(in), value :: n, first, last, from, to
  real(c_float), intent(in) :: c(6)
  real(c_float), intent(inout) :: ex(n,n,*), ey(n,n,*), ez(n,n,*)
  real(c_float), intent(in) :: hx(n,n,*), hy(n,n,*), hz(n,n,*)
  real(c_float) :: caex, cbex, caey, cbey, caez, cbez
  integer(c_size_t) :: i, j, k
  caex = c(1); cbex = c(2); caey = c(3); cbey = c(4); caez = c(5); cbez = c(6)
  do j = first + 1, last
    do i = from + 1, to
      do k = 2, n - 2
        ex(k,i,j) = caex*(ex(k,i,j) + cbex*(hz(k,i,j) - hz(k,i,j-1) + hy(k,i,j) - hy(k-1,i,j)))
      end do
      do k = 2, n - 2
        ey(k,i,j) = caey*(ey(k,i,j) + cbey*(hx(k-1,i,j) - hx(k,i,j) + hz(k,i-1,j) - hz(k,i,j)))
      end do
      do k = 2, n - 2
        ez(k,i,j) = caez*(ez(k,i,j) + cbez*(hx(k,i,j-1) - hx(k,i,j) + hy(k,i,j) - hy(k,i-1,j)))
      end do
    end do
  end do
end subroutine fdtd_fortran_split3
